"""The first step of the deploy wizard: the engine, the model, and how an engine of one's own is started and asked."""

import json
import shlex
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from endpoints.engines.registry import ENGINES
from frontend.serving.forms import PLAIN

# Fields that are of an engine of one's own, by the names of its spec.
CUSTOM_FIELDS: Final = (
    "command",
    "ready_kind",
    "ready_path",
    "ready_body",
    "health_path",
    "metrics_path",
    "api_key_variable",
)


def text_field(
    label: Any, help_text: Any = "", *, most: int = 200, required: bool = False, **attrs: str
) -> forms.CharField:
    """Return a field of one line that no browser corrects."""
    widget = forms.TextInput(attrs={**PLAIN, **attrs})
    return forms.CharField(label=label, help_text=help_text, max_length=most, required=required, widget=widget)


class ModelForm(forms.Form):
    """What should answer."""

    kind = forms.ChoiceField(
        label=gettext_lazy("Engine"), choices=[(kind, engine.label) for kind, engine in ENGINES.items()], initial="vllm"
    )
    source = forms.ChoiceField(
        label=gettext_lazy("The model comes from"),
        choices=[
            ("huggingface", "Hugging Face"),
            ("modelscope", "ModelScope"),
            ("path", gettext_lazy("a path on the server")),
        ],
        help_text=gettext_lazy("Mirrors are set for each server, on its page."),
    )
    model = text_field(
        pgettext_lazy("of an engine", "Model"),
        gettext_lazy("As the hub writes it, such as Qwen/Qwen3-8B, or an absolute path."),
        most=1000,
        placeholder="Qwen/Qwen3-8B",
    )
    revision = text_field(
        gettext_lazy("Revision of the model"), gettext_lazy("A branch, tag or commit; empty: the newest.")
    )
    version = text_field(
        gettext_lazy("Version of the engine"),
        gettext_lazy("State it, so that every replica runs the same; empty: whatever is newest then."),
    )
    served_name = text_field(
        gettext_lazy("Name for callers"), gettext_lazy("What they put into `model`; empty: the model's own.")
    )
    runtime = forms.ChoiceField(
        label=gettext_lazy("Runs as"),
        choices=[("container", gettext_lazy("a container")), ("process", gettext_lazy("a plain process"))],
        help_text=gettext_lazy("Plain processes are for rented containers; the engine must be installed there."),
    )
    image = text_field(gettext_lazy("Image"), gettext_lazy("Instead of the engine's usual one."), most=255)
    command = text_field(
        gettext_lazy("Command"),
        gettext_lazy("Of an engine of your own; {port}, {host}, {model} and {gpu_count} are filled in."),
        most=2000,
        placeholder="my-engine --port {port}",
    )
    ready_kind = forms.ChoiceField(
        label=gettext_lazy("Test request"),
        required=False,
        choices=[
            ("http", gettext_lazy("any answer of 2xx")),
            ("chat_stream", gettext_lazy("a chat whose first token comes")),
            ("completion_stream", gettext_lazy("a completion whose first token comes")),
        ],
        help_text=gettext_lazy("What makes a replica ready, and is asked again and again."),
    )
    ready_path = text_field(
        gettext_lazy("Path of the test request"),
        gettext_lazy("Such as /v1/chat/completions."),
        placeholder="/",
    )
    ready_body = forms.CharField(
        label=gettext_lazy("Body of the test request"),
        required=False,
        max_length=5_000,
        widget=forms.Textarea(attrs={"rows": 2, **PLAIN}),
        help_text=gettext_lazy("A JSON object, sent by POST; empty: GET."),
    )
    health_path = text_field(gettext_lazy("Path of the health check"), gettext_lazy("Asked by gateways; empty: none."))
    metrics_path = text_field(
        gettext_lazy("Path of the metrics"),
        gettext_lazy("Prometheus text with vLLM's names, such as /metrics; empty: none."),
    )
    api_key_variable = text_field(
        gettext_lazy("Variable of its key"),
        gettext_lazy("In which the engine takes the bearer that it asks for; empty: it asks for none."),
        most=100,
    )

    def clean_command(self) -> str:
        """Refuse what no shell would read."""
        return words(str(self.cleaned_data["command"]))

    def clean_ready_body(self) -> dict[str, Any] | None:
        """Return the object. Raises ValidationError."""
        text = str(self.cleaned_data["ready_body"]).strip()
        if not text:
            return None
        try:
            body = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValidationError(_("That is no JSON: write an object, from { to }.")) from error
        if not isinstance(body, dict):
            raise ValidationError(_("That is no JSON: write an object, from { to }."))
        return body

    def clean(self) -> dict[str, Any]:
        """Want a model, except of an engine of one's own."""
        cleaned: dict[str, Any] = super().clean() or {}
        if not cleaned.get("model") and cleaned.get("kind") != "custom" and "model" not in self.errors:
            self.add_error("model", _("Which model? Write its name as at the hub, or its path."))
        return cleaned


def words(text: str) -> str:
    """Return a text that a shell could split into words. Raises ValidationError."""
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValidationError(_("It cannot be read as words: close every quotation mark.")) from error
    return text
