"""NVML's return codes in the words of the wire: why a reading, a card or the whole driver is missing."""

from typing import Final

import pynvml

NOT_SUPPORTED: Final = "not_supported"
UNKNOWN_ERROR: Final = "unknown_error"

REASON_OF_CODE: Final = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: NOT_SUPPORTED,
    pynvml.NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: NOT_SUPPORTED,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: NOT_SUPPORTED,
    pynvml.NVML_ERROR_DEPRECATED: NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "function_not_found",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_OPERATING_SYSTEM: "no_permission",
    pynvml.NVML_ERROR_INSUFFICIENT_POWER: "insufficient_power",
    pynvml.NVML_ERROR_TIMEOUT: "not_answering",
    pynvml.NVML_ERROR_GPU_IS_LOST: "gpu_lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "reset_required",
}
# Reasons that stay true for this card and driver: such a reading is not asked again.
SETTLED_REASONS: Final = frozenset({NOT_SUPPORTED, "function_not_found"})
# After these nothing that the library gave out is good any more: shut down, initialise again.
START_OVER_CODES: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        pynvml.NVML_ERROR_GPU_NOT_FOUND,
    }
)


class StartOverError(Exception):
    """The library as a whole has to be initialised again."""

    def __init__(self, code: int) -> None:
        super().__init__(sentence_of(code))
        self.code = code


class CardLostError(Exception):
    """The card fell off the bus: no other call on it will answer."""


def reason_of(code: int) -> str:
    """Return the wire's reason for a return code."""
    return REASON_OF_CODE.get(code, UNKNOWN_ERROR)


def code_of(error: BaseException) -> int:
    """Return the NVML code of an exception; NVML_ERROR_UNKNOWN for any other exception."""
    value = getattr(error, "value", pynvml.NVML_ERROR_UNKNOWN)
    return value if isinstance(value, int) else int(pynvml.NVML_ERROR_UNKNOWN)


def sentence_of(code: int) -> str:
    """Return the library's own words for a return code."""
    try:
        return str(pynvml.NVMLError(code))
    except Exception:  # noqa: BLE001 (the words come from a library that may just have failed)
        return f"NVML error {code}"
