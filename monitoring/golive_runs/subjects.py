"""What apps above say of what is tested: its facts, before and after, by which a test is told apart from another one."""

from collections.abc import Callable, Mapping
from typing import Any, Final

# Given the subject's id and the facts of the beginning, return the facts of now.
Facts = Callable[[int, Mapping[str, Any]], Mapping[str, Any]]
_facts: Final[dict[str, Facts]] = {}


def register_facts(subject_kind: str, facts: Facts) -> None:
    """Say how facts of a kind of subject are read (once, when the app starts)."""
    _facts[subject_kind] = facts


def facts_now(subject_kind: str, subject_id: int, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts of now; those of the beginning for a kind that nobody registered."""
    read = _facts.get(subject_kind)
    return before if read is None else read(subject_id, before)
