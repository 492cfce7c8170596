"""How many bytes a weight takes, by precision and quantisation, and what a model's own configuration says it is.

Group-wise formats keep a 16-bit scale and a zero point for each 128 weights (GPTQ, AWQ: 4 + 20/128 bits), MXFP4 an 8-bit scale
for each 32 (4.25 bits), NVFP4 one for each 16 (4.5 bits). GGUF: bits per weight as llama.cpp's quantisation table states them
for an 8B model. All but GGUF leave the embeddings in 16 bits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from panel.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Precision:
    """bytes: of one weight of a linear layer. embedding_bytes: of one weight of the embeddings. flag: vLLM's --quantization."""

    bytes: float
    embedding_bytes: float = 2.0
    flag: str = ""


PRECISIONS: Final[Mapping[str, Precision]] = {
    "float32": Precision(4.0, 4.0),
    "float16": Precision(2.0),
    "bfloat16": Precision(2.0),
    "fp8": Precision(1.0, flag="fp8"),
    "int8": Precision(1.0),
    "gptq_int8": Precision((8 + 24 / 128) / 8),
    "gptq_int4": Precision((4 + 20 / 128) / 8),
    "awq": Precision((4 + 20 / 128) / 8),
    "bnb_4bit": Precision(4.5 / 8, flag="bitsandbytes"),
    "mxfp4": Precision(4.25 / 8),
    "nvfp4": Precision(4.5 / 8),
    "q8_0": Precision(8.5 / 8, 8.5 / 8),
    "q6_k": Precision(6.56 / 8, 6.56 / 8),
    "q5_k_m": Precision(5.70 / 8, 5.70 / 8),
    "q4_k_m": Precision(4.89 / 8, 4.89 / 8),
}
KV_BYTES: Final[Mapping[str, float]] = {
    "auto": 2.0,
    "bfloat16": 2.0,
    "float16": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
}


def precision(name: str) -> Precision:
    """Return a precision by its name. Raises InvalidInput that names those there are."""
    known = PRECISIONS.get(name)
    if known is None:
        facts = {"name": name, "known": ", ".join(PRECISIONS)}
        raise InvalidInput(_("There is no precision “%(name)s”; choose one of: %(known)s.") % facts, field="precision")
    return known


def kv_bytes(name: str) -> float:
    """Return the bytes of one value in the KV cache. Raises InvalidInput."""
    known = KV_BYTES.get(name)
    if known is None:
        facts = {"name": name, "known": ", ".join(KV_BYTES)}
        raise InvalidInput(
            _("There is no KV cache precision “%(name)s”; choose one of: %(known)s.") % facts, field="kv_precision"
        )
    return known


def precision_of(config: Mapping[str, Any]) -> str:
    """Return in which precision a checkpoint lies, by its Hugging Face config.json: its quantisation, else its dtype."""
    quantization = config.get("quantization_config")
    if isinstance(quantization, Mapping):
        return _of_quantization(quantization)
    text = config.get("text_config")
    inner = text if isinstance(text, Mapping) else {}
    for source in (config, inner):
        for key in ("torch_dtype", "dtype"):
            name = str(source.get(key, "")).removeprefix("torch.")
            if name in PRECISIONS:
                return name
    return "bfloat16"


def _of_quantization(given: Mapping[str, Any]) -> str:
    """Return the precision that a quantization_config means; of what is not known, one by its bits."""
    method, algorithm = (str(given.get(key, "")).lower() for key in ("quant_method", "quant_algo"))
    bits = given.get("bits")
    named = next((name for name in (method, algorithm) if name in PRECISIONS), None)
    if named is not None:
        return named
    if method == "bitsandbytes":
        return "bnb_4bit" if given.get("load_in_4bit") else "int8"
    for weights in _weights(given):
        is_float, wide = weights.get("type") == "float", weights.get("num_bits")
        by_bits = {4: "nvfp4" if is_float else "gptq_int4", 8: "fp8" if is_float else "int8"}
        return by_bits.get(wide if isinstance(wide, int) else 0, "bfloat16")
    return {4: "gptq_int4", 8: "gptq_int8"}.get(
        bits if isinstance(bits, int) else 0, "fp8" if "fp8" in method else "bfloat16"
    )


def _weights(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what compressed-tensors says of weights, group by group."""
    groups = given.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            yield weights
