"""What a key may do, found by trying."""

from collections.abc import Callable
from typing import TypeVar

from fleet.providers.errors import AccessRefused
from fleet.reasons import Reason

Value = TypeVar("Value")


def tried(call: Callable[[], Value]) -> tuple[Value | None, bool]:
    """Make a call and return (what it gave, whether the key may make it).

    Any other failure is raised, a key that is refused among them.
    """
    try:
        return call(), True
    except AccessRefused as error:
        if error.reason != Reason.PERMISSION_MISSING:
            raise
        return None, False


def may(call: Callable[[], object]) -> bool:
    """Say whether the key may make a call. Any other failure is raised."""
    return tried(call)[1]
