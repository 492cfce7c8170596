"""In which places two specs differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """One place: path (`arguments.max_model_len`), and its value before and after; None where it is not there."""

    path: str
    before: Any
    after: Any


def spec_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return every place in which two specs differ, by its path; lists are compared whole."""
    return sorted(_walk("", before, after), key=lambda each: each.path)


def _walk(prefix: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    found: list[Difference] = []
    for key in before.keys() | after.keys():
        old, new, path = before.get(key), after.get(key), f"{prefix}{key}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += _walk(f"{path}.", old, new)
        elif old != new:
            found.append(Difference(path, old, new))
    return found
