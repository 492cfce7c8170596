"""Arguments that hold what sizing found, in an engine's own names; and what a card cannot compute."""

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _

from endpoints.engines.base import Value
from endpoints.engines.concepts import Concept, argument_for
from endpoints.sizing.fit import Demand, Fit
from endpoints.sizing.precision import precision

# Generations of NVIDIA cards by what they compute, oldest first; a card that is not listed is taken for a new one.
_GENERATIONS: Final = ("pascal", "volta", "turing", "ampere", "ada", "blackwell")
_OLD_CARDS: Final[Mapping[str, str]] = {
    "K80": "pascal",
    "P100": "pascal",
    "P40": "pascal",
    "P4": "pascal",
    "GTX 1080 Ti": "pascal",
    "V100": "volta",
    "T4": "turing",
    "RTX 2080": "turing",
    "Quadro RTX": "turing",
    "A100": "ampere",
    "A800": "ampere",
    "A30": "ampere",
    "A40": "ampere",
    "A10": "ampere",
    "A16": "ampere",
    "A2": "ampere",
    "A4000": "ampere",
    "A4500": "ampere",
    "A5000": "ampere",
    "A6000": "ampere",
    "RTX 3060": "ampere",
    "RTX 3070": "ampere",
    "RTX 3080": "ampere",
    "RTX 3090": "ampere",
    "L4": "ada",
    "L20": "ada",
    "L40": "ada",
    "RTX 40": "ada",
    "H20": "ada",
    "H100": "ada",
    "H200": "ada",
    "H800": "ada",
}
# Since which generation a precision is computed as such (vLLM, "Supported Hardware for Quantization Kernels").
_SINCE: Final[Mapping[str, str]] = {
    "bfloat16": "ampere",
    "int8": "turing",
    "awq": "turing",
    "gptq_int4": "volta",
    "gptq_int8": "volta",
    "bnb_4bit": "volta",
    "fp8": "ada",
    "nvfp4": "blackwell",
}


def suggested_arguments(kind: str, demand: Demand, found: Fit) -> dict[str, Value]:
    """Return arguments of an engine for a fit, {} when nothing fits; the number of requests is always among them.

    The tensor-parallel degree is a field of the spec: `found.degree`. What an engine does not have, or calls by a value that it
    does not take, is left out.
    """
    if found.verdict not in {"fits", "tight"}:
        return {}
    wanted: dict[Concept, Value] = {
        "slots": max(min(demand.concurrency, found.concurrency), 1),
        "context": demand.context,
        "quantization": precision(demand.precision).flag,
        "kv_cache": "" if demand.kv_precision == "auto" else demand.kv_precision,
    }
    if kind == "vllm":  # the others count their share otherwise
        wanted["memory"] = demand.utilization
    values: dict[str, Value] = {}
    for concept, value in wanted.items():
        argument = argument_for(kind, concept)
        if argument is not None and value != "" and (not argument.choices or value in argument.choices):
            values[argument.name] = value
    return values


def card_note(precision_name: str, gpu_model: str) -> str:
    """Return what to know of a precision on a card, "" for nothing. gpu_model: as `fleet.providers.gpu_models` names it."""
    since, card = _SINCE.get(precision_name), _generation(gpu_model)
    if since is None or card is None or _GENERATIONS.index(card) >= _GENERATIONS.index(since):
        return ""
    facts = {"card": gpu_model, "precision": precision_name}
    if precision_name == "bfloat16":
        return _("%(card)s does not compute in bfloat16: choose float16.") % facts
    return (
        _(
            "Engines have no %(precision)s kernels for %(card)s: they refuse it, or compute in 16 bits and gain memory only."
        )
        % facts
    )


def _generation(gpu_model: str) -> str | None:
    """Return the generation of a card, None when it is not listed; the longest name that it begins with counts."""
    names = [
        name for name in _OLD_CARDS if gpu_model == name or gpu_model.startswith((f"{name} ", f"{name}G", f"{name}S"))
    ]
    names += [name for name in ("RTX 40",) if gpu_model.startswith(name)]
    return _OLD_CARDS[max(names, key=len)] if names else None
