"""The deploy wizard: five steps whose state is the address, so that Back works, a step can be shared, and no script is needed.

A step is reached when every step before it holds; else the first that does not is shown, with what is wrong at its field.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from endpoints.engines.base import CustomCommand, EngineSpec, Launch
from endpoints.models import Endpoint, Revision
from endpoints.services.launching import spec_check
from frontend.forms import refuse
from frontend.serving.revisions import words_text
from frontend.serving.wizard_forms import ARGUMENT, ArgumentsForm, HardwareForm, ReplicasForm
from frontend.serving.wizard_model import CUSTOM_FIELDS, ModelForm
from panel.core.errors import InvalidInput

TITLES: Final[Mapping[str, Promise]] = {
    "model": pgettext_lazy("of an engine", "Model"),
    "hardware": _("Hardware"),
    "arguments": _("Engine arguments"),
    "replicas": _("Replicas and placement"),
    "review": _("Review"),
}
# A field of each step that its form always sends: it says that the step was filled in.
_MARKS: Final = {
    "model": "source",
    "hardware": "context",
    "arguments": "start_limit_seconds",
    "replicas": "desired_replicas",
}

# Where a refusal's field of a spec stands in the forms.
_FIELDS: Final = {
    "extra": "extra_arguments",
    "tensor_parallel_size": "gpus",
    "gpu_count": "gpus",
    **{f"custom.{name}": name for name in CUSTOM_FIELDS},
}


@dataclass(slots=True)
class Wizard:
    """One request to the wizard. endpoint: that gets a new revision, None for a new endpoint; step: the one to show."""

    data: QueryDict
    given: QueryDict
    endpoint: Endpoint | None
    step: str
    by_step: dict[str, forms.Form]
    spec: EngineSpec | None = None
    launch: Launch | None = None

    @property
    def steps(self) -> list[str]:
        """Return the names of the steps; a new revision keeps the endpoint's replicas and placement."""
        return [name for name in TITLES if name != "replicas" or self.endpoint is None]

    @property
    def form(self) -> forms.Form | None:
        """Return the form of the step shown."""
        return self.by_step.get(self.step)

    @property
    def gpus(self) -> int:
        """Return the GPUs of each replica; the hardware step must hold."""
        return int(self.by_step["hardware"].cleaned_data["gpus"])

    def hidden(self) -> list[tuple[str, str]]:
        """Return what the step's form must carry along of the others."""
        own = set(self.form.fields) if self.form is not None else set()
        left = own | {"step", "config", "csrfmiddlewaretoken"}
        return [
            (name, value) for name, values in self.data.lists() if name not in left for value in values if value != ""
        ]

    def links(self) -> list[dict[str, Any]]:
        """Return the steps as links, for the head of the page; those not reached have none."""
        here = self.steps.index(self.step)
        return [
            {
                "label": TITLES[name],
                "current": name == self.step,
                "number": at + 1,
                # A new revision begins with values that hold; the first step that does not is shown instead.
                "href": self.address(name) if at < here or (self.endpoint is not None and at > here) else "",
            }
            for at, name in enumerate(self.steps)
        ]

    def address(self, step: str) -> str:
        """Return the query of a step with everything that was given."""
        data = self.data.copy()
        data.pop("config", None)
        data["step"] = step
        return f"?{data.urlencode()}"

    @property
    def next_step(self) -> str:
        """Return the step after the one shown."""
        return self.steps[min(self.steps.index(self.step) + 1, len(self.steps) - 1)]


def _checks_of(custom: CustomCommand) -> dict[str, str]:
    return {
        "ready_kind": custom.ready_kind,
        "ready_path": custom.ready_path,
        "ready_body": "" if custom.ready_body is None else json.dumps(custom.ready_body, ensure_ascii=False),
        "health_path": custom.health_path,
        "metrics_path": custom.metrics_path or "",
        "api_key_variable": custom.api_key_variable,
    }


def initial_of(revision: Revision) -> dict[str, str]:
    """Return what the fields show of a revision, as an address says it."""
    spec = EngineSpec.from_json(revision.spec)
    custom = spec.custom
    plain = ("kind", "source", "model", "revision", "version", "served_name", "runtime", "image")
    found = {name: str(getattr(spec, name)) for name in plain}
    found |= {
        "command": words_text(custom.command) if custom is not None else "",
        **(_checks_of(custom) if custom is not None else {}),
        "gpus": str(revision.gpus),
        "context": "8192",
        "concurrency": "16",
        "precision": "bfloat16",
        "extra_arguments": words_text(spec.extra_arguments),
        "start_limit_seconds": str(spec.start_limit_seconds),
        "drain_seconds": str(spec.drain_seconds),
    }
    for name, value in spec.arguments.items():
        found[ARGUMENT + name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def wizard_of(given: QueryDict, *, endpoint: Endpoint | None = None, base: Revision | None = None) -> Wizard:
    """Return the wizard as an address asks for it. base: the revision whose values stand where the address says nothing."""
    data = QueryDict(mutable=True)
    if base is not None:
        data.update(initial_of(base))
    for name, values in given.lists():
        data.setlist(name, [value[:20_000] for value in values])
    made = Wizard(data, given, endpoint, "model", {})
    wanted = given.get("step", "model")
    wanted = wanted if wanted in made.steps else "model"
    for name in made.steps[: made.steps.index(wanted)]:
        made.step = name
        made.by_step[name] = _form(name, data, is_bound=True)
        if not made.by_step[name].is_valid() or not _holds(made, name):
            return made
    made.step = wanted
    if wanted != "review":
        is_filled = _MARKS[wanted] in given and wanted == given.get("from", wanted)
        made.by_step[wanted] = _form(wanted, data, is_bound=is_filled)
    return made


def _form(name: str, data: QueryDict, *, is_bound: bool) -> forms.Form:
    if name == "arguments":
        kind = str(data.get("kind", "vllm"))
        return ArgumentsForm(data, kind=kind) if is_bound else ArgumentsForm(kind=kind, initial=_initial(data))
    classes: Mapping[str, type[forms.Form]] = {"model": ModelForm, "hardware": HardwareForm, "replicas": ReplicasForm}
    return classes[name](data) if is_bound else classes[name](initial=_initial(data))


def _initial(data: QueryDict) -> dict[str, Any]:
    lists = {"servers": data.getlist("servers")} if "servers" in data else {}
    return {**{name: data[name] for name in data}, **lists}


def _holds(made: Wizard, name: str) -> bool:
    """Look at what a step's form cannot know by itself; what is wrong is put at the field. Says whether it holds."""
    if name == "hardware":
        _keep_shape(made)
        return True
    if name != "arguments":
        return True
    try:
        made.spec = spec_of(made)
        made.launch = spec_check(made.spec, gpus=made.gpus)
    except InvalidInput as error:
        _place_error(made, error)
        return False
    return True


def _keep_shape(made: Wizard) -> None:
    made.data.pop("config", None)


def _place_error(made: Wizard, error: InvalidInput) -> None:
    """Show a refusal at its field: the step that has it becomes the one shown."""
    field = error.field or ""
    field = _FIELDS.get(field, field)
    for name, form in made.by_step.items():
        for candidate in (field, ARGUMENT + field):
            if candidate in form.fields:
                form.add_error(candidate, error.message)
                made.step = name
                return
    refuse(made.by_step[made.step], error)


def spec_of(made: Wizard, *, environment: Mapping[str, Any] | None = None) -> EngineSpec:
    """Return the spec of what was given; the forms of model, hardware and arguments must be valid. Raises InvalidInput."""
    model, arguments = made.by_step["model"].cleaned_data, made.by_step["arguments"]
    assert isinstance(arguments, ArgumentsForm)  # noqa: S101  # made by _form
    given = arguments.arguments
    times = int(given.get("pipeline_parallel_size") or 1) * int(given.get("data_parallel_size") or 1)
    plain = ("kind", "source", "model", "revision", "version", "served_name", "runtime", "image")
    spec: dict[str, Any] = {
        **{name: model[name] for name in plain},
        "arguments": given,
        "extra_arguments": shlex.split(arguments.cleaned_data["extra_arguments"]),
        "tensor_parallel_size": max(made.gpus // times, 1) if model["kind"] not in {"custom", "comfyui"} else 1,
        "start_limit_seconds": arguments.cleaned_data["start_limit_seconds"],
        "drain_seconds": arguments.cleaned_data["drain_seconds"],
        **(environment or {}),
    }
    if model["kind"] == "custom":
        given_here = {name: model[name] for name in CUSTOM_FIELDS if model[name] not in ("", None)}
        spec["custom"] = {**given_here, "command": shlex.split(model["command"])}
    made_spec = EngineSpec.from_json(spec)
    # What is as it is anyway stays out, so that a comparison shows what somebody changed.
    usual = EngineSpec(kind=made_spec.kind)
    return EngineSpec.from_json(
        {name: value for name, value in spec.items() if value != getattr(usual, name, None)} | {"kind": made_spec.kind}
    )
