"""One of one's own passkeys: its name, and the way to remove it. Adding one is the script's, over the API."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.forms import PasskeyNameForm, ProofForm, refuse
from frontend.views.settings.tabs import settings_page
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.models import Passkey
from panel.accounts.selectors.users import passkey_list
from panel.accounts.services.passkeys import passkey_remove, passkey_rename
from panel.accounts.services.users import password_prove
from panel.core.errors import InvalidInput, NotFound, RateLimited


def _mine(request: PageRequest, passkey_id: int) -> Passkey:
    return get_object_or_404(passkey_list(user_id=request.user.pk), pk=passkey_id)


def _show(
    request: PageRequest,
    passkey: Passkey,
    *,
    name_form: PasskeyNameForm | None = None,
    proof_form: ProofForm | None = None,
) -> HttpResponse:
    return settings_page(
        request,
        "settings/passkey.html",
        "settings",
        status=400 if name_form or proof_form else 200,
        title=_("Passkey"),
        passkey=passkey,
        name_form=name_form or PasskeyNameForm(initial={"name": passkey.name}),
        proof_form=proof_form or ProofForm(),
    )


@page(Capability.PROFILE_EDIT)
def passkey(request: PageRequest, passkey_id: int) -> HttpResponse:
    """Show one."""
    return _show(request, _mine(request, passkey_id))


@require_POST
@page(Capability.PROFILE_EDIT)
def rename(request: PageRequest, passkey_id: int) -> HttpResponse:
    """Call it something else."""
    form = PasskeyNameForm(request.POST)
    if not form.is_valid():
        return _show(request, _mine(request, passkey_id), name_form=form)
    name = form.cleaned_data["name"]
    passkey_rename(actor=Actor.from_request(request), user=request.user, passkey_id=passkey_id, name=name)
    messages.success(request, _("Saved."))
    return HttpResponseRedirect(reverse("settings-second-factor"))


@require_POST
@sensitive_post_parameters("password")
@page(Capability.PROFILE_EDIT)
def remove(request: PageRequest, passkey_id: int) -> HttpResponse:
    """Forget it, once the password is right."""
    row, form = _mine(request, passkey_id), ProofForm(request.POST)
    if not form.is_valid():
        return _show(request, row, proof_form=form)
    try:
        password_prove(user=request.user, password=form.cleaned_data["password"])
    except (InvalidInput, RateLimited) as error:
        refuse(form, error)
        return _show(request, row, proof_form=form)
    try:
        passkey_remove(actor=Actor.from_request(request), user=request.user, passkey_id=passkey_id)
    except NotFound:
        return HttpResponseRedirect(reverse("settings-second-factor"))
    messages.success(request, _("%(name)s is removed.") % {"name": row.name})
    return HttpResponseRedirect(reverse("settings-second-factor"))
