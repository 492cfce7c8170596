"""Two revisions of an endpoint side by side: the places in which their specs differ."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from endpoints.models import Endpoint, Revision
from endpoints.revisions import spec_differences


@dataclass(frozen=True, slots=True)
class Change:
    """One place for components/diff.html; None where it was not there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two revisions and where they differ."""

    before: Revision
    after: Revision
    changes: Sequence[Change]


def changes_of(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Return the places in which two specs differ."""
    return [Change(each.path, _text(each.before), _text(each.after)) for each in spec_differences(before, after)]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def compared(endpoint: Endpoint, before: str, after: str) -> Comparison | None:
    """Return the comparison that an address asks for, by the numbers of two revisions; None when it names none. One query."""
    wanted = [int(text) for text in (before, after) if text.isdecimal() and len(text) < 10]
    if len(wanted) < 2:
        return None
    found = {each.number: each for each in Revision.objects.filter(endpoint=endpoint, number__in=wanted)}
    old, new = found.get(wanted[0]), found.get(wanted[1])
    if old is None or new is None:
        return None
    spec = {**old.spec, "gpus": old.gpus}, {**new.spec, "gpus": new.gpus}
    return Comparison(old, new, changes_of(*spec))
