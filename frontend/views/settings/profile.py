"""One's own settings: language, zone, theme, shortcuts, password."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import override
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.forms import PasswordChangeForm, PreferencesForm, refuse
from frontend.preferences import preferences_of, remember
from frontend.views.settings.tabs import settings_page
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.services.users import password_change, preferences_update
from panel.core.errors import InvalidInput, RateLimited


def _profile(
    request: PageRequest, *, preferences: PreferencesForm | None = None, password: PasswordChangeForm | None = None
) -> HttpResponse:
    return settings_page(
        request,
        "settings/profile.html",
        "settings",
        status=400 if preferences or password else 200,
        title=_("Settings"),
        form=preferences or PreferencesForm.of(request.user),
        password_form=password or PasswordChangeForm(),
    )


@page(Capability.PROFILE_EDIT)
def profile(request: PageRequest) -> HttpResponse:
    """Show and store how pages look to this person."""
    if request.method != "POST":
        return _profile(request)
    form = PreferencesForm(request.POST)
    if not form.is_valid():
        return _profile(request, preferences=form)
    try:
        user = preferences_update(actor=Actor.from_request(request), user=request.user, **form.cleaned_data)
    except InvalidInput as error:
        refuse(form, error)
        return _profile(request, preferences=form)
    with override(preferences_of(request).language):  # the sentence already in the language just chosen
        messages.success(request, _("Saved."))
    response = HttpResponseRedirect(reverse("settings"))
    remember(response, theme=user.theme, language=user.language or None)
    return response


@require_POST
@sensitive_post_parameters("current_password", "password")
@page(Capability.PROFILE_EDIT)
def password(request: PageRequest) -> HttpResponse:
    """Change one's own password; every other session ends."""
    form = PasswordChangeForm(request.POST)
    if not form.is_valid():
        return _profile(request, password=form)
    try:
        password_change(
            actor=Actor.from_request(request),
            request=request,
            current=form.cleaned_data["current_password"],
            new=form.cleaned_data["password"],
        )
    except (InvalidInput, RateLimited) as error:
        refuse(form, error)
        return _profile(request, password=form)
    messages.success(request, _("The password is changed. Your other sessions have ended."))
    return HttpResponseRedirect(reverse("settings"))
