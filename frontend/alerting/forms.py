"""Forms of alerts. The services decide whether what is typed can work."""

from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend.alerting.words import KINDS
from frontend.forms import _zones
from monitoring.alerts.builtin import DEFINITIONS
from monitoring.alerts.conditions.thresholds import Operator
from monitoring.alerts.enums import Family
from monitoring.alerts.models import Rule
from monitoring.alerts.series import series_known
from monitoring.alerts.subjects import subject_kinds, subjects_load
from monitoring.alerts.words import rule_title
from panel.core.enums import Severity

DAYS: Final = (
    ("0", gettext_lazy("Monday")),
    ("1", gettext_lazy("Tuesday")),
    ("2", gettext_lazy("Wednesday")),
    ("3", gettext_lazy("Thursday")),
    ("4", gettext_lazy("Friday")),
    ("5", gettext_lazy("Saturday")),
    ("6", gettext_lazy("Sunday")),
)
LENGTHS: Final = (
    ("1h", gettext_lazy("1 hour")),
    ("4h", gettext_lazy("4 hours")),
    ("morning", gettext_lazy("Until tomorrow 09:00")),
    ("1d", gettext_lazy("1 day")),
    ("7d", gettext_lazy("7 days")),
    ("30d", gettext_lazy("30 days")),
)
_SPANS: Final = {
    "1h": timedelta(hours=1), "4h": timedelta(hours=4), "1d": timedelta(days=1), "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}  # fmt: skip
MORNING: Final = 9
OPERATORS: Final = (
    (Operator.ABOVE, gettext_lazy("above the limit")),
    (Operator.BELOW, gettext_lazy("below the limit")),
    (Operator.SHARE, gettext_lazy("above the limit for a share of the time")),
    (Operator.ABSENT, gettext_lazy("has no value")),
    (Operator.CHANGED, gettext_lazy("changed")),
)


def end_of(length: str, *, at: datetime) -> datetime:
    """Return when something of a chosen length ends; “tomorrow 09:00” is on the viewer's clock."""
    if length in _SPANS:
        return at + _SPANS[length]
    local = timezone.localtime(at) + timedelta(days=1)
    return local.replace(hour=MORNING, minute=0, second=0, microsecond=0)


def _rules() -> list[tuple[str, Any]]:
    own = Rule.objects.filter(is_builtin=False).values_list("key", "name")
    return [
        ("", _("Any rule")),
        *((each.key, rule_title(each.key)) for each in DEFINITIONS),
        *((key, name) for key, name in own),
    ]


def _families() -> list[tuple[str, Any]]:
    return [("", _("Any")), *((value, label) for value, label in Family.choices)]


def _subjects() -> list[tuple[str, Any]]:
    groups = [
        (
            str(KINDS.get(kind, kind)),
            [
                (f"{kind}:{key}", each.name)
                for key, each in sorted(subjects_load(kind, None).items(), key=lambda one: one[1].name)
            ],
        )
        for kind in subject_kinds()
    ]
    return [("", _("Anything")), *((name, choices) for name, choices in groups if choices)]


class SilenceForm(forms.Form):
    """What nobody is to be told of, until when, and why. Matchers are picked; a label is typed."""

    subject = forms.ChoiceField(label=gettext_lazy("What"), required=False, choices=_subjects)
    rule = forms.ChoiceField(label=gettext_lazy("Rule"), required=False, choices=_rules)
    family = forms.ChoiceField(label=gettext_lazy("About"), required=False, choices=_families)
    severity = forms.ChoiceField(
        label=gettext_lazy("Severity"), required=False, choices=[("", gettext_lazy("Any")), *Severity.choices]
    )
    label = forms.CharField(
        label=gettext_lazy("Label"),
        required=False,
        max_length=265,
        help_text=gettext_lazy("name=value, as servers have them"),
    )
    length = forms.ChoiceField(label=gettext_lazy("For"), choices=LENGTHS, initial="4h")
    reason = forms.CharField(label=gettext_lazy("Reason"), max_length=500)
    is_maintenance = forms.BooleanField(
        label=gettext_lazy("Maintenance"),
        required=False,
        help_text=gettext_lazy("What is measured meanwhile counts for no rule either."),
    )
    days = forms.MultipleChoiceField(
        label=gettext_lazy("Only on"), required=False, choices=DAYS, widget=forms.CheckboxSelectMultiple
    )
    window_from = forms.TimeField(
        label=gettext_lazy("Only from"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    window_to = forms.TimeField(
        label=gettext_lazy("to"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    zone = forms.ChoiceField(label=gettext_lazy("Time zone"), required=False, choices=_zones)

    def matchers(self) -> dict[str, str]:
        """Return what must hold."""
        data = self.cleaned_data
        found = {name: data[name] for name in ("subject", "rule", "family", "severity") if data.get(name)}
        name, _sign, value = (data.get("label") or "").partition("=")
        return {**found, name.strip(): value.strip()} if name.strip() else found

    def window(self) -> dict[str, Any]:
        """Return the weekly window, {} without one."""
        data = self.cleaned_data
        if not data.get("window_from") or not data.get("window_to"):
            return {}
        days = [int(each) for each in data.get("days") or ()]
        return {"days": days, "from": f"{data['window_from']:%H:%M}", "to": f"{data['window_to']:%H:%M}"}

    def zone_name(self) -> str:
        """Return the zone of the window: the chosen one, else the viewer's."""
        current = timezone.get_current_timezone()
        return self.cleaned_data.get("zone") or (current.key if isinstance(current, ZoneInfo) else "UTC")

    def clean(self) -> dict[str, Any]:
        """A window has both ends."""
        data: dict[str, Any] = super().clean() or {}
        if bool(data.get("window_from")) != bool(data.get("window_to")):
            self.add_error("window_to", _("A window has a beginning and an end."))
        if data.get("label") and "=" not in data["label"]:
            self.add_error("label", _("Write it as name=value."))
        return data


class RuleForm(forms.Form):
    """A threshold rule of people's own, or what differs from a built-in one."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    series = forms.ChoiceField(
        label=gettext_lazy("Series"),
        choices=lambda: [(key, f"{key} ({unit})") for key, unit in sorted(series_known().items())],
    )
    operator = forms.ChoiceField(label=gettext_lazy("Fires when it is"), choices=OPERATORS)
    limit = forms.FloatField(label=gettext_lazy("Limit"), required=False)
    clear = forms.FloatField(
        label=gettext_lazy("Over at"), required=False, help_text=gettext_lazy("Empty: at the limit itself.")
    )
    share = forms.FloatField(
        label=gettext_lazy("Share of the time"),
        required=False,
        min_value=0.001,
        max_value=1,
        help_text=gettext_lazy("0 to 1"),
    )
    window_seconds = forms.FloatField(label=gettext_lazy("Window (s)"), required=False, min_value=60, max_value=86_400)
    limit_ms = forms.FloatField(
        label=gettext_lazy("Limit (ms)"),
        required=False,
        min_value=0.001,
        help_text=gettext_lazy("Empty: the probe's own."),
    )
    for_seconds = forms.FloatField(label=gettext_lazy("Must last (s)"), required=False, min_value=0, max_value=604_800)
    clear_seconds = forms.FloatField(
        label=gettext_lazy("Must be over for (s)"), required=False, min_value=0, max_value=604_800
    )
    samples = forms.IntegerField(label=gettext_lazy("Values at least"), required=False, min_value=1, max_value=10_000)
    no_data = forms.ChoiceField(
        label=gettext_lazy("Without data"),
        required=False,
        choices=[("freeze", gettext_lazy("it stays as it is")), ("alert", gettext_lazy("it fires"))],
    )
    severity = forms.ChoiceField(label=gettext_lazy("Severity"), required=False, choices=Severity.choices)
    scope = forms.CharField(
        label=gettext_lazy("Only with label"), required=False, max_length=265, help_text=gettext_lazy("name=value")
    )
    is_enabled = forms.BooleanField(label=gettext_lazy("On"), required=False)

    SETTINGS: Final = (
        "series", "operator", "limit", "clear", "share", "window_seconds", "limit_ms", "for_seconds", "clear_seconds",
        "samples", "no_data",
    )  # fmt: skip

    def __init__(self, *args: Any, allowed: frozenset[str], is_builtin: bool, **kwargs: Any) -> None:
        """allowed: settings that this rule has."""
        super().__init__(*args, **kwargs)
        for name in self.SETTINGS:
            if name not in allowed or (is_builtin and name in {"series", "operator"}):
                self.fields.pop(name, None)
        if is_builtin:
            self.fields.pop("name")
            self.fields["severity"].choices = [("", _("As built in")), *Severity.choices]  # type: ignore[attr-defined]

    def settings(self) -> dict[str, Any]:
        """Return what was typed of the settings."""
        data = self.cleaned_data
        return {name: data[name] for name in self.SETTINGS if data.get(name) not in {None, ""}}

    def scope_words(self) -> dict[str, str]:
        """Return the label that subjects must have."""
        name, _sign, value = (self.cleaned_data.get("scope") or "").partition("=")
        return {name.strip(): value.strip()} if name.strip() else {}
