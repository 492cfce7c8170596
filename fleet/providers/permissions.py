"""What a key may do, found by trying."""

from collections.abc import Callable
from typing import Any

from fleet.providers.errors import AccessRefused
from fleet.reasons import Reason


def may(call: Callable[[], Any]) -> bool:
    """Say whether the key may make a call. Any other failure is raised, a key that is refused among them."""
    try:
        call()
    except AccessRefused as error:
        if error.reason != Reason.PERMISSION_MISSING:
            raise
        return False
    return True
