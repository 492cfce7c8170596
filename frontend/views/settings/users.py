"""People, as an admin manages them."""

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from frontend.access import PageRequest, page
from frontend.forms import NewUserForm, PasswordSetForm, UserForm, refuse
from frontend.views.settings.tabs import settings_page
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.models import User
from panel.accounts.selectors.users import user_list
from panel.accounts.services.two_factor import second_factor_is_due, two_factor_reset
from panel.accounts.services.users import password_set, user_create, user_delete, user_update
from panel.core.errors import Conflict, InvalidInput, NotFound


@page(Capability.USERS_MANAGE)
def users(request: PageRequest) -> HttpResponse:
    """List everybody."""
    return settings_page(request, "settings/users.html", "settings-users", title=_("Users"), rows=user_list())


@sensitive_post_parameters("password")
@page(Capability.USERS_MANAGE)
def user_new(request: PageRequest) -> HttpResponse:
    """Make a person who can log in at once."""
    form = NewUserForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = user_create(actor=Actor.from_request(request), **form.cleaned_data)
        except InvalidInput as error:
            refuse(form, error)
        else:
            messages.success(request, _("%(name)s can log in now.") % {"name": user.username})
            return HttpResponseRedirect(reverse("settings-users"))
    status = 400 if request.method == "POST" else 200
    return settings_page(
        request, "settings/user_new.html", "settings-users", status=status, title=_("New user"), form=form
    )


def _person(user_id: int) -> User:
    found = user_list().filter(pk=user_id).first()
    if found is None:
        raise NotFound(_("There is no such person."))
    return found


def _person_page(
    request: PageRequest, person: User, *, form: UserForm | None = None, password_form: PasswordSetForm | None = None
) -> HttpResponse:
    initial = {"username": person.username, "email": person.email, "role": person.role}
    return settings_page(
        request,
        "settings/user.html",
        "settings-users",
        status=400 if form or password_form else 200,
        title=person.username,
        person=person,
        has_second_factor=second_factor_is_due(person),
        consequences=[
            _("They are logged out at once, and their API tokens stop working."),
            _("What they did stays in the audit trail under their name."),
            _("This cannot be undone."),
        ],
        milder=_("To keep them out for a while, deactivate them instead."),
        form=form or UserForm(initial=initial),
        password_form=password_form or PasswordSetForm(),
    )


@page(Capability.USERS_MANAGE)
def user(request: PageRequest, user_id: int) -> HttpResponse:
    """Show and change one person."""
    person = _person(user_id)
    if request.method != "POST":
        return _person_page(request, person)
    form = UserForm(request.POST)
    if not form.is_valid():
        return _person_page(request, person, form=form)
    try:
        user_update(actor=Actor.from_request(request), user_id=user_id, **form.cleaned_data)
    except (InvalidInput, Conflict) as error:
        refuse(form, error)
        return _person_page(request, person, form=form)
    messages.success(request, _("Saved."))
    return HttpResponseRedirect(reverse("settings-users"))


@require_POST
@sensitive_post_parameters("password")
@page(Capability.USERS_MANAGE)
def user_password(request: PageRequest, user_id: int) -> HttpResponse:
    """Give a person a new password; their sessions end."""
    person = _person(user_id)
    form = PasswordSetForm(request.POST)
    if not form.is_valid():
        return _person_page(request, person, password_form=form)
    try:
        password_set(actor=Actor.from_request(request), user_id=user_id, password=form.cleaned_data["password"])
    except InvalidInput as error:
        refuse(form, error)
        return _person_page(request, person, password_form=form)
    messages.success(request, _("%(name)s has a new password.") % {"name": person.username})
    return HttpResponseRedirect(reverse("settings-users"))


@require_POST
@page(Capability.USERS_MANAGE)
def user_active(request: PageRequest, user_id: int) -> HttpResponse:
    """Deactivate a person (is_active=false) or let them in again; the toast offers the way back."""
    is_active = request.POST.get("is_active") == "true" or request.GET.get("is_active") == "true"
    person = user_update(actor=Actor.from_request(request), user_id=user_id, is_active=is_active)
    if is_active:
        messages.success(request, _("%(name)s can log in again.") % {"name": person.username})
    else:
        undo = reverse("settings-user-active", args=[user_id]) + "?is_active=true"
        text = _("%(name)s is deactivated: sessions have ended, API tokens rest.") % {"name": person.username}
        messages.success(request, text, extra_tags=undo)
    return HttpResponseRedirect(reverse("settings-users"))


@require_POST
@page(Capability.USERS_MANAGE)
def user_second_factor(request: PageRequest, user_id: int) -> HttpResponse:
    """Switch a person's second factor off, for one who lost phone and recovery codes."""
    person = _person(user_id)
    two_factor_reset(actor=Actor.from_request(request), user=person)
    messages.success(request, _("%(name)s logs in without a code now.") % {"name": person.username})
    return HttpResponseRedirect(reverse("settings-user", args=[user_id]))


@require_POST
@page(Capability.USERS_MANAGE)
def user_remove(request: PageRequest, user_id: int) -> HttpResponse:
    """Delete a person for good, once their name was typed."""
    person = _person(user_id)
    if request.POST.get("typed_name") != person.username:
        raise InvalidInput(_("The name typed is not “%(name)s”. Nothing was deleted.") % {"name": person.username})
    user_delete(actor=Actor.from_request(request), user_id=user_id)
    messages.success(request, _("%(name)s is deleted.") % {"name": person.username})
    return HttpResponseRedirect(reverse("settings-users"))
