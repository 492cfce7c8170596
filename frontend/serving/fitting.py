"""Whether a model fits, on each server's GPUs and on each offer, with what an hour costs: rows for the wizard's hardware step."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.utils.translation import gettext as _

from endpoints.fitting import FitRow, Sizing, sizing_of
from endpoints.sizing.fit import Demand
from endpoints.sizing.shape import ModelShape
from frontend.serving.wizard_forms import HardwareForm
from panel.core.errors import InvalidInput

_TYPED: Final = ("layers", "attention_heads", "kv_heads", "head_size")
_TONES: Final = {"fits": "ok", "tight": "warning", "does_not": "critical", "unknown": "unknown"}


def verdict_word(verdict: str) -> str:
    """Return a verdict in a word."""
    return {"fits": _("fits"), "tight": _("tight"), "does_not": _("does not fit"), "unknown": _("not known")}[verdict]


@dataclass(frozen=True, slots=True)
class Row(FitRow):
    """A row as the page shows it."""

    @property
    def tone(self) -> str:
        """Return the mark of the verdict."""
        return _TONES[self.fit.verdict]

    @property
    def word(self) -> str:
        """Return the verdict."""
        return verdict_word(self.fit.verdict)


def shape_of(form: HardwareForm) -> ModelShape | None:
    """Return the model's shape, None when nothing was said of it; half of one is an error at the missing field."""
    read = getattr(form, "read", None)
    if isinstance(read, ModelShape):
        return read
    given = form.cleaned_data
    typed = {name: given.get(name) for name in _TYPED}
    kept = _kept(given.get("shape", ""))
    if not given.get("parameters") and not any(typed.values()):
        return kept
    missing = [name for name in ("parameters", *_TYPED) if not given.get(name)]
    for name in missing:
        form.add_error(name, _("Type it in too, or paste the model's config.json."))
    if missing:
        return None
    parameters = int(given["parameters"] * 10**9)
    try:
        if kept is not None and _is_same(kept, given):
            return kept
        return ModelShape(parameters=parameters, **typed)  # type: ignore[arg-type]  # none is missing
    except InvalidInput as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return None


def _is_same(kept: ModelShape, given: Mapping[str, Any]) -> bool:
    """Say whether the fields still say what was read from the file, which knows more than they do."""
    is_rounded = round(Decimal(kept.parameters) / 10**9, 4) == round(given["parameters"], 4)
    return is_rounded and all(getattr(kept, name) == given[name] for name in _TYPED)


def _kept(text: str) -> ModelShape | None:
    try:
        return ModelShape(**json.loads(text)) if text else None
    except (ValueError, TypeError, InvalidInput):
        return None


def fields_of(shape: ModelShape) -> dict[str, str]:
    """Return a shape as fields of the form, and whole in the hidden one."""
    billions = round(Decimal(shape.parameters) / 10**9, 4).normalize()
    kept = {name: value for name, value in asdict(shape).items() if value}
    return {
        "parameters": f"{billions:f}",
        **{name: str(getattr(shape, name)) for name in _TYPED},
        "shape": json.dumps(kept, separators=(",", ":")),
    }


def demand_of(form: HardwareForm, shape: ModelShape) -> Demand | None:
    """Return what is wanted; a refusal is shown at its field, None then."""
    given = form.cleaned_data
    try:
        return Demand(
            shape=shape, context=given["context"], concurrency=given["concurrency"], precision=given["precision"]
        )
    except InvalidInput as error:
        form.add_error(error.field if error.field in form.fields else None, error.message)
        return None


def sizing_shown(demand: Demand, at: datetime) -> Sizing[Row]:
    """Return the verdicts as the page shows them."""
    return sizing_of(demand, at, Row)
