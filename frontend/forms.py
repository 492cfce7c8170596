"""Forms of the pages. They shape and bound what is typed; the services decide whether it may be."""

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from frontend.preferences import zone_names
from panel.accounts.enums import Role, Theme
from panel.accounts.models import User
from panel.core.errors import FleetdeckError


def refuse(form: forms.BaseForm, error: FleetdeckError) -> None:
    """Show a service's refusal at the field that it names, else above the form."""
    form.add_error(error.field if error.field in form.fields else None, error.message)


def _zones() -> list[tuple[str, Any]]:
    """Return the choices of a zone, grouped by continent."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name in zone_names():
        continent, _slash, place = name.partition("/")
        groups.setdefault(continent, []).append((name, (place or continent).replace("_", " ")))
    return [("", _("Automatic")), *groups.items()]


class PreferencesForm(forms.Form):
    """How pages look to one person."""

    language = forms.ChoiceField(
        label=_("Language"), required=False, choices=[("", _("As the browser asks")), *settings.LANGUAGES]
    )
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        choices=_zones,
        help_text=_("Automatic: the installation's zone when one is set, else the browser's."),
    )
    theme = forms.ChoiceField(label=_("Theme"), choices=Theme.choices)
    has_shortcuts = forms.BooleanField(
        label=_("Keyboard shortcuts"), required=False, help_text=_("Press ? on any page for the list.")
    )

    @classmethod
    def of(cls, user: User) -> "PreferencesForm":
        """Return the form with a person's present choices."""
        return cls(initial={name: getattr(user, name) for name in cls.base_fields})


def _password(label: Any, autocomplete: str, **extra: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=1024,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": autocomplete}),
        **extra,
    )


class PasswordChangeForm(forms.Form):
    """One's own password."""

    current_password = _password(_("Present password"), "current-password")
    password = _password(
        _("New password"), "new-password", help_text=_("At least 10 characters, and none that many people use.")
    )


class PasswordSetForm(forms.Form):
    """Somebody's new password, given by an admin."""

    password = _password(
        _("New password"), "new-password", help_text=_("At least 10 characters. All sessions of this person end.")
    )


class ProofForm(forms.Form):
    """That whoever sits there knows the password."""

    password = _password(_("Your password"), "current-password")


class PasskeyNameForm(forms.Form):
    """What a passkey is called."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("Where it lives, as in “work laptop”."))


class PasskeyForm(PasskeyNameForm, ProofForm):
    """A new passkey's name, and that whoever adds it knows the password."""


class CodeForm(forms.Form):
    """A code of an authenticator app."""

    code = forms.CharField(
        label=_("Code"),
        max_length=32,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric", "autofocus": True}),
    )


class UserForm(forms.Form):
    """A person, as an admin sees them."""

    username = forms.CharField(label=_("Name"), max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    email = forms.EmailField(label=_("Mail address"), required=False, max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


class NewUserForm(UserForm):
    """The same with a first password."""

    password = _password(
        _("First password"),
        "new-password",
        help_text=_("At least 10 characters. Tell it in person; they can change it after the first log-in."),
    )


class JoinLineForm(forms.Form):
    """What the line that a machine runs depends on."""

    way = forms.ChoiceField(
        label=_("What is it?"),
        choices=[("machine", _("Server or virtual machine")), ("container", _("Container without an init"))],
        initial="machine",
        widget=forms.RadioSelect,
    )
    mirror = forms.CharField(
        label=_("Package mirror"),
        max_length=500,
        required=False,
        help_text=_(
            "For machines that do not reach the public package index well: a name from the list, or an index address."
        ),
        widget=forms.TextInput(attrs={"list": "join-mirrors", "autocomplete": "off", "spellcheck": "false"}),
    )


class JoinForm(JoinLineForm):
    """A machine that shall join."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        help_text=_("How the server is called in this panel."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    provider = forms.CharField(
        label=_("Provider"), max_length=64, required=False, widget=forms.TextInput(attrs={"list": "join-providers"})
    )
    region = forms.CharField(label=_("Region"), max_length=64, required=False)


TOKEN_LIFETIMES: Final = {
    "1": (_("1 day"), timedelta(days=1)),
    "7": (_("7 days"), timedelta(days=7)),
    "30": (_("30 days"), timedelta(days=30)),
    "90": (_("90 days"), timedelta(days=90)),
    "365": (_("1 year"), timedelta(days=365)),
}


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What uses it, e.g. “nightly report”."))
    scope = forms.ChoiceField(label=_("May do what this role may"))
    lifetime = forms.ChoiceField(
        label=_("Ends after"), choices=[(key, words) for key, (words, _delta) in TOKEN_LIFETIMES.items()], initial="90"
    )

    def __init__(self, *args: Any, roles: list[Role], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scope = self.fields["scope"]
        assert isinstance(scope, forms.ChoiceField)  # noqa: S101 (tells the type checker what the class says above)
        scope.choices = [(role.value, role.label) for role in roles]

    @property
    def lifetime_chosen(self) -> timedelta:
        """Return how long the token lives; the form must be valid."""
        return TOKEN_LIFETIMES[self.cleaned_data["lifetime"]][1]
