"""The words of a go-live test. Their sentences are in `words`."""

from enum import StrEnum


class Outcome(StrEnum):
    """What a test comes to. NOT_PROVEN: it keeps its promise in what was seen, which is too little to prove it.

    INVALID: the test itself went wrong; it says nothing about the endpoint, and never that it passed.
    """

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    NOT_PROVEN = "not_proven"
    INVALID = "invalid"


class Flaw(StrEnum):
    """Why a test is invalid."""

    ARRIVALS_TOO_SLOW = "arrivals_too_slow"
    LOOP_LAG = "loop_lag"
    LOOP_LAG_UNKNOWN = "loop_lag_unknown"
    WARM_UP_TOO_SHORT = "warm_up_too_short"
    VANTAGE_BAD = "vantage_bad"
    CHANGED = "changed"
    STOPPED = "stopped"


class Stop(StrEnum):
    """Why no further step of load was taken."""

    OVERSATURATED = "oversaturated"
    ERRORS = "errors"
    PLATEAU = "plateau"
    MOST = "most"
