"""Forms of channels: the fields that a kind needs. The services decide whether what is typed can work."""

from typing import Any, Final

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend.delivery.words import topic_choices
from frontend.forms import _zones
from frontend.serving.forms import PLAIN
from monitoring.delivery.models import Channel
from monitoring.notifiers.presets import PRESETS
from panel.core.enums import Severity

_TEXT: Final = forms.TextInput(attrs=PLAIN)
_HIDDEN: Final = forms.PasswordInput(attrs={"autocomplete": "new-password", **PLAIN}, render_value=False)
_TIME: Final = forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
# Which fields only some kinds have; all others have them all.
SETTINGS: Final[dict[str, tuple[str, ...]]] = {
    "mail": ("host", "port", "transport", "username", "sender", "sender_name", "recipients", "ca_certificate"),
    "dingtalk": ("keyword",),
    "feishu": ("keyword",),
    "wecom": (),
    "slack": (),
    "webhook": (),
}
SECRETS: Final[dict[str, tuple[str, ...]]] = {
    "mail": ("password",),
    "dingtalk": ("url", "secret"),
    "feishu": ("url", "secret"),
    "wecom": ("url",),
    "slack": ("url",),
    "webhook": ("url", "signing_secret"),
}
SHARED: Final = ("min_severity", "topics", "language", "time_zone", "quiet_start", "quiet_end", "fallback")
_SECRET_FIELDS: Final[dict[str, tuple[Any, Any, int]]] = {
    "password": (
        gettext_lazy("Password"),
        gettext_lazy(
            "QQ, 163 and others want the authorisation code from the mailbox's settings, Gmail an app password."
        ),
        500,
    ),
    "url": (
        gettext_lazy("Address"),
        gettext_lazy("As the robot's or receiver's page shows it; it is kept as a secret."),
        2_000,
    ),
    "secret": (gettext_lazy("Secret for signing"), gettext_lazy("Empty, if the robot has none."), 500),
    "signing_secret": (
        gettext_lazy("Signing secret"),
        gettext_lazy("whsec_…; left empty, one is made and shown once."),
        200,
    ),
}


def secret_field(name: str) -> forms.CharField:
    """Return the field of one secret."""
    label, hint, longest = _SECRET_FIELDS[name]
    return forms.CharField(
        label=label, help_text=hint, max_length=longest, required=name == "url", strip=True, widget=_HIDDEN
    )


class ChannelForm(forms.Form):
    """One channel; kind: decides which fields there are. Secrets stand in it only while it is new."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100, widget=_TEXT)
    host = forms.CharField(label=gettext_lazy("SMTP server"), max_length=253, widget=_TEXT)
    port = forms.IntegerField(label=gettext_lazy("Port"), min_value=1, max_value=65_535, initial=465)
    transport = forms.ChoiceField(
        label=gettext_lazy("Encryption"),
        choices=(
            ("tls", gettext_lazy("TLS from the first byte (465, 994)")),
            ("starttls", gettext_lazy("STARTTLS (587)")),
            ("none", gettext_lazy("None: only for a server of your own network")),
        ),
    )
    username = forms.CharField(
        label=gettext_lazy("User name"), max_length=254, required=False, widget=_TEXT,
        help_text=gettext_lazy("Mostly the whole mail address; empty for a server that asks for none."),
    )  # fmt: skip
    sender = forms.CharField(
        label=gettext_lazy("Sender"), max_length=254, widget=_TEXT,
        help_text=gettext_lazy("Most servers want the mailbox's own address."),
    )  # fmt: skip
    sender_name = forms.CharField(label=gettext_lazy("Sender's name"), max_length=100, required=False, widget=_TEXT)
    recipients = forms.CharField(
        label=gettext_lazy("Recipients"), max_length=10_000, widget=forms.Textarea(attrs={"rows": 3, **PLAIN}),
        help_text=gettext_lazy(
            "One mail address a line; behind it, if you like, a language (en, zh-hans) and a zone (Asia/Shanghai). Else those"
            " of the person of this panel with that address count, else the channel's."
        ),
    )  # fmt: skip
    ca_certificate = forms.CharField(
        label=gettext_lazy("Certificate of an authority of your own"), max_length=15_000, required=False,
        widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        help_text=gettext_lazy("PEM text; empty for servers with a usual certificate."),
    )  # fmt: skip
    keyword = forms.CharField(
        label=gettext_lazy("Keyword"), max_length=50, required=False, widget=_TEXT,
        help_text=gettext_lazy("One of those in the robot's security settings; it is put into every message."),
    )  # fmt: skip
    min_severity = forms.ChoiceField(label=gettext_lazy("Told from"), choices=Severity.choices, initial=Severity.INFO)
    topics = forms.MultipleChoiceField(
        label=gettext_lazy("Told of"), required=False, widget=forms.SelectMultiple(attrs={"size": 3}),
        help_text=gettext_lazy("None chosen: everything."),
    )  # fmt: skip
    language = forms.ChoiceField(
        label=gettext_lazy("Language"), required=False,
        choices=[("", gettext_lazy("The installation's")), *settings.LANGUAGES],
    )  # fmt: skip
    time_zone = forms.ChoiceField(label=gettext_lazy("Time zone"), required=False, choices=_zones)
    quiet_start = forms.TimeField(
        label=gettext_lazy("Quiet from"), required=False, widget=_TIME,
        help_text=gettext_lazy("What is not critical waits until the end of the quiet hours and comes as one message."),
    )  # fmt: skip
    quiet_end = forms.TimeField(label=gettext_lazy("Quiet until"), required=False, widget=_TIME)
    fallback = forms.ChoiceField(
        label=gettext_lazy("If it cannot deliver"), required=False,
        help_text=gettext_lazy("Where a message goes that this channel could not deliver."),
    )  # fmt: skip

    def __init__(self, *args: Any, kind: str, found: Channel | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        kept = {"name", *SETTINGS[kind], *SHARED}
        for name in [name for name in self.fields if name not in kept]:
            del self.fields[name]
        if found is None:
            self.fields |= {name: secret_field(name) for name in SECRETS[kind]}
        others = Channel.objects.exclude(pk=found.pk if found is not None else 0).order_by("name")
        choices: list[tuple[str, Any]] = [("", _("Any other that works"))]
        choices += [(str(pk), name) for pk, name in others.values_list("pk", "name")]
        self._choose("fallback", choices)
        self._choose("topics", topic_choices())

    def _choose(self, name: str, choices: list[tuple[str, Any]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 (declared above)
        field.choices = choices

    def clean_recipients(self) -> list[dict[str, str]]:
        """Return the addresses, each with its language and zone where they stand behind it."""
        return [_recipient(line) for line in self.cleaned_data["recipients"].splitlines() if line.strip()]

    @property
    def first(self) -> list[Any]:
        """Return the fields of its kind."""
        own, secrets = list(SETTINGS[self.kind]), SECRETS[self.kind]
        after = own.index("username") + 1 if "username" in own else 0
        return [self[name] for name in ("name", *own[:after], *secrets, *own[after:]) if name in self.fields]

    @property
    def shared(self) -> list[Any]:
        """Return the fields that every kind has."""
        return [self[name] for name in SHARED]

    @property
    def settings(self) -> dict[str, Any]:
        """Return what may be shown."""
        return {name: value for name in SETTINGS[self.kind] if (value := self.cleaned_data.get(name)) not in (None, "")}

    @property
    def secrets(self) -> dict[str, str]:
        """Return what is kept as a secret."""
        return {name: value for name in SECRETS[self.kind] if (value := self.cleaned_data.get(name))}

    @property
    def columns(self) -> dict[str, Any]:
        """Return what every channel has."""
        given = {name: self.cleaned_data[name] for name in ("name", *SHARED) if name != "fallback"}
        fallback = self.cleaned_data["fallback"]
        return {**given, "fallback_id": int(fallback) if fallback else None}


def _recipient(line: str) -> dict[str, str]:
    address, *rest = line.split()
    found = {"address": address}
    for word in rest:
        if word.lower() in dict(settings.LANGUAGES):
            found["language"] = word.lower()
        elif "/" in word or word == "UTC":
            found["time_zone"] = word
        else:
            raise forms.ValidationError(
                _("“%(word)s” is neither a language (en, zh-hans) nor a zone (Asia/Shanghai).") % {"word": word[:50]}
            )
    return found


def initial_of(channel: Channel) -> dict[str, Any]:
    """Return a channel as its form shows it."""
    shown = {**channel.settings, "name": channel.name, "fallback": str(channel.fallback_id or "")}
    shown |= {name: getattr(channel, name) for name in SHARED if name != "fallback"}
    lines = [
        " ".join(filter(None, (entry.get("address"), entry.get("language"), entry.get("time_zone"))))
        for entry in channel.settings.get("recipients", [])
    ]
    return {**shown, "recipients": "\n".join(lines)}


def preset_initial(code: str) -> dict[str, Any]:
    """Return what is known of a mail provider."""
    preset = next((each for each in PRESETS if each.code == code), None)
    return {"host": preset.host, "port": preset.port, "transport": preset.transport} if preset is not None else {}
