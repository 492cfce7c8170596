"""One's own second factor: set up with an authenticator app, switched off again."""

from typing import Any

import segno
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.forms import CodeForm, PasskeyForm, ProofForm, refuse
from frontend.views.settings.tabs import settings_page
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.selectors.users import passkey_list, two_factor_state
from panel.accounts.services.passkeys import are_passkeys_possible
from panel.accounts.services.two_factor import two_factor_confirm, two_factor_disable, two_factor_start
from panel.accounts.services.users import password_prove
from panel.core.errors import Conflict, InvalidInput, RateLimited

Expected = (InvalidInput, RateLimited, Conflict)


def _show(request: PageRequest, *, form: ProofForm | None = None) -> HttpResponse:
    is_on, codes_left = two_factor_state(user=request.user)
    return settings_page(
        request,
        "settings/second_factor.html",
        "settings",
        status=400 if form else 200,
        title=_("Second factor"),
        is_on=is_on,
        codes_left=codes_left,
        form=form or ProofForm(),
        passkeys=passkey_list(user_id=request.user.pk),
        passkey_form=PasskeyForm(auto_id="passkey_%s"),
        are_passkeys_possible=are_passkeys_possible(request),
    )


@page(Capability.PROFILE_EDIT)
def second_factor(request: PageRequest) -> HttpResponse:
    """Show whether logging in takes a code, and offer the other."""
    return _show(request)


def _proved(request: PageRequest) -> ProofForm | None:
    """Return None when the password is right, else the form with what is wrong."""
    form = ProofForm(request.POST)
    if not form.is_valid():
        return form
    try:
        password_prove(user=request.user, password=form.cleaned_data["password"])
    except Expected as error:
        refuse(form, error)
        return form
    return None


def qr_code(text: str) -> SafeString:
    """Return the text as an SVG of dark modules; the light ones and the margin are its background."""
    svg = segno.make(text, error="m").svg_inline(scale=4, border=3, svgclass="qr", lineclass=None, omitsize=True)
    return mark_safe(svg.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1))  # noqa: S308  (paths of numbers, drawn by segno)


def _enrol(request: PageRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    template = "settings/second_factor_enrol.html"
    return settings_page(request, template, "settings", status=status, title=_("Second factor"), **context)


@require_POST
@never_cache
@sensitive_post_parameters("password")
@page(Capability.PROFILE_EDIT)
def start(request: PageRequest) -> HttpResponse:
    """Show the secret for the app, in this one answer."""
    wrong = _proved(request)
    if wrong is not None:
        return _show(request, form=wrong)
    enrolment = two_factor_start(actor=Actor.from_request(request), user=request.user)
    return _enrol(request, form=CodeForm(), secret=enrolment.secret, uri=enrolment.uri, qr=qr_code(enrolment.uri))


@require_POST
@never_cache
@page(Capability.PROFILE_EDIT)
def confirm(request: PageRequest) -> HttpResponse:
    """Take the first code; the answer holds the recovery codes, this once."""
    form = CodeForm(request.POST)
    if not form.is_valid():
        return _enrol(request, status=400, form=form)
    try:
        codes = two_factor_confirm(actor=Actor.from_request(request), user=request.user, code=form.cleaned_data["code"])
    except Expected as error:
        refuse(form, error)
        return _enrol(request, status=400, form=form)
    template, text = "settings/second_factor_codes.html", "\n".join(codes)
    return settings_page(request, template, "settings", title=_("Recovery codes"), text=text)


@require_POST
@sensitive_post_parameters("password")
@page(Capability.PROFILE_EDIT)
def disable(request: PageRequest) -> HttpResponse:
    """Switch it off and forget the recovery codes."""
    wrong = _proved(request)
    if wrong is not None:
        return _show(request, form=wrong)
    two_factor_disable(actor=Actor.from_request(request), user=request.user)
    messages.success(request, _("The second factor is off."))
    return HttpResponseRedirect(reverse("settings-second-factor"))
