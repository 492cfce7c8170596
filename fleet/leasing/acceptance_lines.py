"""What an acceptance report is made of: what is expected and by whom, and one judged line for each thing."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from fleet.agent.acceptance.found import CardFound

Value = int | float | bool | str
# How a value is read by people: formatting happens at the edge.
Kind = Literal["text", "count", "bytes", "bytes_per_second", "watts", "share", "generation", "width", "flag", "ms"]
Positive = Annotated[int, Meta(ge=1, le=2**53)]
Text = Annotated[str, Meta(max_length=64)]


class Verdict(StrEnum):
    """NOTED: nothing is expected here, so there is nothing to judge."""

    PASS = "pass"  # noqa: S105 (a word of the report)
    FAIL = "fail"
    NOT_PROVEN = "not_proven"
    NOTED = "noted"


class Source(StrEnum):
    """Where an expectation is from. CARD: what the card itself states as its default. RULE: a limit of this check."""

    TYPED = "typed"
    LEASE = "lease"
    TABLE = "table"
    MAKER = "maker"
    CARD = "card"
    RULE = "rule"


class Ordered(Struct, omit_defaults=True, frozen=True):
    """What was ordered; what nobody said is None or empty. Bandwidths are of the address that was chosen, else of the panel."""

    gpu_model: Text = ""
    gpu_count: Positive | None = None
    gpu_memory_bytes: Positive | None = None
    cpu_count: Positive | None = None
    memory_bytes: Positive | None = None
    disk_bytes: Positive | None = None
    disk_kind: Literal["", "nvme", "ssd", "rotational"] = ""
    disk_read_bytes_per_second: Positive | None = None
    pcie_generation: Annotated[int, Meta(ge=1, le=8)] | None = None
    pcie_width: Annotated[int, Meta(ge=1, le=32)] | None = None
    has_nvlink: bool | None = None
    power_watts: Positive | None = None
    driver_version: Text = ""
    cuda_version: Text = ""
    downlink_bytes_per_second: Positive | None = None
    uplink_bytes_per_second: Positive | None = None
    round_trip_ms: Annotated[float, Meta(gt=0, le=60_000)] | None = None
    hops: Annotated[int, Meta(ge=1, le=64)] | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """One expectation with where it is from."""

    value: Value
    source: Source


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was typed in for this check, and what the lease says; the former goes first."""

    typed: Ordered
    lease: Ordered

    def get(self, name: str) -> Expected | None:
        """Return what is expected of one thing, None when nobody said."""
        for ordered, source in ((self.typed, Source.TYPED), (self.lease, Source.LEASE)):
            value = getattr(ordered, name)
            if value is not None and value != "":
                return Expected(value, source)
        return None

    def text(self, name: str) -> str:
        """Return an expected text, empty when there is none."""
        expected = self.get(name)
        return str(expected.value) if expected is not None else ""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing, ordered and found. subject: a card's index, None for the machine. tolerance: share that is allowed to lack.

    reason: why it is not proven, a code.
    """

    code: str
    kind: Kind
    verdict: Verdict
    ordered: Value | None = None
    found: Value | None = None
    source: Source | None = None
    tolerance: float | None = None
    subject: int | None = None
    reason: str = ""


NOT_MEASURED: Final = "not_measured"


def judged(
    code: str,
    kind: Kind,
    expected: Expected | None,
    found: Value | None,
    *,
    is_met: bool = True,
    tolerance: float | None = None,
    missing: str = "",
    unclear: str = "",
) -> Line:
    """Return the line: noted without an expectation, not proven without a value or when `unclear` says why, else pass or fail."""
    if expected is None:
        return Line(code, kind, Verdict.NOTED, None, found, reason="" if found is not None else missing)
    reason = unclear if found is not None else missing or NOT_MEASURED
    verdict = Verdict.NOT_PROVEN if reason else Verdict.PASS if is_met else Verdict.FAIL
    return Line(code, kind, verdict, expected.value, found, expected.source, tolerance, reason=reason)


def at_least(
    code: str, kind: Kind, expected: Expected | None, found: float | None, *, tolerance: float = 0.0, missing: str = ""
) -> Line:
    """Return the line of a number that may not be less than expected, but for the tolerance (0.1: a tenth)."""
    is_met = expected is not None and found is not None and found >= float(expected.value) * (1 - tolerance)
    return judged(code, kind, expected, found, is_met=is_met, tolerance=tolerance or None, missing=missing)


def at_most(
    code: str, kind: Kind, expected: Expected | None, found: float | None, *, tolerance: float = 0.0, missing: str = ""
) -> Line:
    """Return the line of a number that may not be more than expected, but for the tolerance."""
    is_met = expected is not None and found is not None and found <= float(expected.value) * (1 + tolerance)
    return judged(code, kind, expected, found, is_met=is_met, tolerance=tolerance or None, missing=missing)


def why_missing(card: CardFound, name: str) -> str:
    """Return why a card has no such value: its own reason, or the card's as a whole."""
    return card.missing.get(name) or card.missing.get("card") or NOT_MEASURED
