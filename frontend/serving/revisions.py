"""Two revisions of an endpoint side by side: the places in which their specs differ."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from endpoints.models import Endpoint, Revision
from endpoints.revisions import spec_differences

# What `shlex.split` reads back as it is; braces are of the names that the panel fills in.
_PLAIN: Final = re.compile(r"[A-Za-z0-9@%+=:,./_{}-]+")


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
    """Return the places in which two specs differ; what was not there at all is told part by part."""
    found: list[Change] = []
    for each in spec_differences(before, after):
        found += _changes(each.path, each.before, each.after)
    return found


def _changes(path: str, before: Any, after: Any) -> list[Change]:
    parts = after if before is None else before if after is None else None
    # A body is one thing that is sent; everything else that holds names is told name by name.
    if not isinstance(parts, dict) or not parts or path.endswith("_body"):
        return [Change(path, _text(before), _text(after))]
    rows = [(f"{path}.{name}", (before or {}).get(name), (after or {}).get(name)) for name in sorted(parts)]
    return [change for row in rows for change in _changes(*row)]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return words_text(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def words_text(words: Sequence[str]) -> str:
    """Return words as they are typed at a command line, quoted only where that is needed to read them back."""
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


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
