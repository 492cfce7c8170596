"""Field values: many readings by number in one call, which costs about as much as one reading by itself."""

from collections.abc import Mapping
from typing import Any, Final

import pynvml

from fleet.agent.nvml.readings import Readings

ALL_LINKS: Final = 0xFFFFFFFF
_MEMBER_OF_TYPE: Final = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}
# What drivers answer for numbers that they do not know yet.
_UNKNOWN_FIELD_CODES: Final = frozenset({pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_FOUND})


class FieldReader:
    """Reads some fields of one card together; those that the card turns out not to have are left out from then on."""

    def __init__(self, handle: Any, readings: Readings, fields: Mapping[str, tuple[int, int]]) -> None:
        self._handle = handle
        self._readings = readings
        self._fields = dict(fields)

    def read(self) -> dict[str, int | float]:
        """Return name → value for the fields that have one. Raises CardLostError and StartOverError."""
        if not self._fields:
            return {}
        answers = self._readings.ask(
            "_field_values", pynvml.nvmlDeviceGetFieldValues, self._handle, list(self._fields.values())
        )
        if answers is None:
            if self._readings.is_settled("_field_values"):
                self._fields = {}
            return {}
        values: dict[str, int | float] = {}
        for name, answer in zip(list(self._fields), answers, strict=True):
            if answer.nvmlReturn == pynvml.NVML_SUCCESS:
                self._readings.answered(name)
                values[name] = getattr(answer.value, _MEMBER_OF_TYPE.get(answer.valueType, "ullVal"))
            else:
                self._refuse(name, answer.nvmlReturn)
        return values

    def _refuse(self, name: str, code: int) -> None:
        self._readings.refused(name, pynvml.NVML_ERROR_NOT_SUPPORTED if code in _UNKNOWN_FIELD_CODES else code)
        if self._readings.is_settled(name):
            del self._fields[name]
