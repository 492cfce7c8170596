"""Forms of the deploy wizard, one for each step; together they are a spec and where it runs."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from endpoints.engines.arguments import Argument
from endpoints.engines.base import DRAIN_SECONDS, START_LIMIT_SECONDS
from endpoints.engines.registry import ENGINES
from endpoints.sizing.precision import PRECISIONS
from endpoints.sizing.shape import shape_from_config
from frontend.golive.forms import GateForm
from frontend.serving.forms import PLAIN, PlacementForm, yes_no
from frontend.serving.wizard_model import text_field, words
from panel.core.errors import InvalidInput

ARGUMENT: Final = "arg_"
_LINE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,99})=(.*)")
_MOST_CONFIG: Final = 20_000


class HardwareForm(forms.Form):
    """How large the model is, and how many GPUs each replica gets."""

    config = forms.CharField(
        label=gettext_lazy("The model's config.json"),
        required=False,
        max_length=_MOST_CONFIG,
        widget=forms.Textarea(attrs={"rows": 3, **PLAIN}),
        help_text=gettext_lazy("Paste it from the hub: the fields below follow from it. Or type them in."),
    )
    parameters = forms.DecimalField(
        label=gettext_lazy("Parameters (billion)"), required=False, min_value=0, max_value=10_000, decimal_places=4
    )
    layers = forms.IntegerField(label=gettext_lazy("Layers"), required=False, min_value=1, max_value=1000)
    attention_heads = forms.IntegerField(
        label=gettext_lazy("Attention heads"), required=False, min_value=1, max_value=1024
    )
    kv_heads = forms.IntegerField(label=gettext_lazy("KV heads"), required=False, min_value=1, max_value=1024)
    head_size = forms.IntegerField(label=gettext_lazy("Head size"), required=False, min_value=1, max_value=4096)
    precision = forms.ChoiceField(
        label=gettext_lazy("Precision of the weights"),
        choices=[(name, name) for name in PRECISIONS],
        initial="bfloat16",
    )
    context = forms.IntegerField(
        label=gettext_lazy("Context (tokens)"), min_value=1, max_value=2**24, initial=8192,
        help_text=gettext_lazy("Of prompt and answer together."),
    )  # fmt: skip
    concurrency = forms.IntegerField(
        label=gettext_lazy("Requests at once"), min_value=1, max_value=4096, initial=16,
        help_text=gettext_lazy("All of them at full context, in each replica."),
    )  # fmt: skip
    gpus = forms.IntegerField(
        label=gettext_lazy("GPUs of each replica"), min_value=0, max_value=16, initial=1,
        help_text=gettext_lazy("0: it needs none."),
    )  # fmt: skip
    shape = forms.CharField(required=False, max_length=2000, widget=forms.HiddenInput)

    def clean_config(self) -> str:
        """Read the shape from the file; it is then kept instead of the file. Raises ValidationError."""
        text = str(self.cleaned_data["config"]).strip()
        if not text:
            return ""
        try:
            given = json.loads(text)
            if not isinstance(given, dict):
                raise ValidationError(_("That is no config.json: it begins with { and ends with }."))
            self.read = shape_from_config(given)
        except json.JSONDecodeError as error:
            raise ValidationError(_("That is no JSON: paste the whole file, from { to }.")) from error
        except InvalidInput as error:
            raise ValidationError(error.message) from error
        return text


class ArgumentsForm(forms.Form):
    """Arguments of one engine, made from its table; what is empty is left to the engine."""

    extra_arguments = text_field(
        gettext_lazy("Further arguments"),
        gettext_lazy("As on a command line; those that the panel sets are refused."),
        most=2000,
    )
    start_limit_seconds = forms.IntegerField(
        label=gettext_lazy("Seconds until the first answer"), min_value=30, max_value=86_400, initial=START_LIMIT_SECONDS,
        help_text=gettext_lazy("A start that takes longer is given up. Large models take many minutes."),
    )  # fmt: skip
    drain_seconds = forms.IntegerField(
        label=gettext_lazy("Seconds to finish"), min_value=0, max_value=7200, initial=DRAIN_SECONDS,
        help_text=gettext_lazy("So long a replica that is let go may work on what it has."),
    )  # fmt: skip

    def __init__(self, *args: Any, kind: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table: Sequence[Argument] = ENGINES[kind].arguments
        for argument in self.table:
            self.fields[ARGUMENT + argument.name] = _argument_field(argument)

    def clean_extra_arguments(self) -> str:
        """Refuse what no shell would read."""
        return words(str(self.cleaned_data["extra_arguments"]))

    @property
    def argument_fields(self) -> list[forms.BoundField]:
        """Return the fields of the table, in its order."""
        return [self[ARGUMENT + argument.name] for argument in self.table]

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what was given, in the table's types; the form must be valid."""
        found = {}
        for argument in self.table:
            value = self.cleaned_data.get(ARGUMENT + argument.name)
            if value not in (None, ""):
                found[argument.name] = value == "true" if argument.type == "boolean" else value
        return found


def _argument_field(argument: Argument) -> forms.Field:
    """Return the field of one argument; its label is the engine's own flag, so that its documentation can be searched for it."""
    left = _("The engine decides")
    shared: dict[str, Any] = {"label": argument.flag or argument.name, "help_text": argument.help, "required": False}
    if argument.type == "boolean":
        choices = [("", left), ("true", _("Yes")), ("false", _("No"))]
        return forms.ChoiceField(choices=choices, initial=_shown(argument.default), **shared)
    if argument.choices:
        choices = [("", left), *((each, each) for each in argument.choices)]
        return forms.ChoiceField(choices=choices, initial=argument.default, **shared)
    if argument.type == "string":
        return forms.CharField(max_length=256, widget=forms.TextInput(attrs=PLAIN), initial=argument.default, **shared)
    bounds: dict[str, Any] = {"min_value": argument.minimum, "max_value": argument.maximum, "initial": argument.default}
    if argument.type == "integer":
        whole: dict[str, Any] = {key: None if value is None else int(value) for key, value in bounds.items()}
        return forms.IntegerField(**shared, **whole)
    return forms.FloatField(**shared, **bounds, widget=forms.NumberInput(attrs={"step": "any"}))


def _shown(value: Any) -> str:
    return "" if value is None else str(value).lower()


class ReplicasForm(PlacementForm):
    """A new endpoint's name, how many replicas, and where."""

    name = forms.RegexField(
        r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        label=gettext_lazy("Name"),
        widget=forms.TextInput(attrs={**PLAIN, "placeholder": "chat"}),
        help_text=gettext_lazy("A part of its address: small letters, digits and hyphens."),
        error_messages={
            "invalid": gettext_lazy(
                "A name is of small letters, digits and hyphens, at most 63: it is a part of the address."
            )
        },
    )
    desired_replicas = forms.IntegerField(label=gettext_lazy("Replicas"), min_value=0, max_value=256, initial=1)
    project = text_field(gettext_lazy("Project"), most=64)
    requires_key = yes_no(gettext_lazy("Callers need a key"))


class ReviewForm(GateForm):
    """What no address may hold: the environment, and the gate; sent with the order."""

    environment = forms.CharField(
        label=gettext_lazy("Environment"), required=False, max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        help_text=gettext_lazy("NAME=value, one a line. No secrets here: they belong below."),
    )  # fmt: skip
    secret_environment = forms.CharField(
        label=gettext_lazy("Secrets in the environment"), required=False, max_length=5_000,
        widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        help_text=gettext_lazy("NAME=name of a secret, one a line, as in: HF_TOKEN=HF_TOKEN"),
    )  # fmt: skip
    note = text_field(gettext_lazy("Note"), gettext_lazy("Why, for those who read the history."), most=500)

    def clean_environment(self) -> dict[str, str]:
        """Return the variables."""
        return _variables(self.cleaned_data["environment"])

    def clean_secret_environment(self) -> dict[str, str]:
        """Return variables and the names of their secrets."""
        return _variables(self.cleaned_data["secret_environment"])


def _variables(text: str) -> dict[str, str]:
    found = {}
    for line in filter(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValidationError(
                _("Write each line as NAME=value; “%(line)s” is not so.") % {"line": line.strip()[:60]}
            )
        found[match[1]] = match[2]
    return found


def lines_of(variables: Mapping[str, str]) -> str:
    """Return variables as they are typed in."""
    return "\n".join(f"{name}={value}" for name, value in variables.items())
