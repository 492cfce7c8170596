"""Is it what I pay for? What was ordered against what a check found, line by line, each with where the expectation is from. Pure.

A line passes, fails, or is not proven: something that should have been measured could not be. Where nothing is expected
the line is noted and counts for nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fleet.agent.acceptance.found import DiskFound, Found, RouteFound
from fleet.leasing.acceptance_cards import card_lines, model_of
from fleet.leasing.acceptance_lines import (
    NOT_MEASURED,
    Expected,
    Line,
    Source,
    Verdict,
    Wishes,
    at_least,
    at_most,
    judged,
)

# Firmware and kernel keep some memory; sellers count disks in powers of ten and file systems take their share.
MEMORY_TOLERANCE: Final = 0.1
DISK_TOLERANCE: Final = 0.12
SPEED_TOLERANCE: Final = 0.1
ROUND_TRIP_TOLERANCE: Final = 0.2
# Certificates, tokens and traces go wrong from about a second on.
CLOCK_SKEW_MS: Final = 1000.0
_SPEED_OF_DISK: Final = {"nvme": 3, "ssd": 2, "rotational": 1}


@dataclass(frozen=True, slots=True)
class Report:
    """The lines of the machine, then those of each card, and what they say together."""

    verdict: Verdict
    lines: tuple[Line, ...]

    @property
    def counts(self) -> Counter[Verdict]:
        """Return how many lines there are of each verdict."""
        return Counter(line.verdict for line in self.lines)


def judge(wishes: Wishes, found: Found) -> Report:
    """Return the report on a machine."""
    whole = [card for card in found.cards if card.state in {"ok", "degraded"}]
    lines = [
        *_machine(wishes, found, len(whole)),
        *_disk(wishes, found.disk or DiskFound(missing={"kind": _why(found, "disk"), "read": _why(found, "disk")})),
        *_routes(wishes, found),
        _clock(found),
    ]
    for card in found.cards:
        lines.extend(card_lines(card, wishes, len(whole)))
    return Report(overall(lines), tuple(lines))


def overall(lines: Iterable[Line]) -> Verdict:
    """Return fail when any line fails, pass when lines were judged and all pass, else not proven."""
    verdicts = {line.verdict for line in lines}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if Verdict.PASS in verdicts and Verdict.NOT_PROVEN not in verdicts else Verdict.NOT_PROVEN


def _why(found: Found, step: str) -> str:
    return found.missing.get(step, NOT_MEASURED)


def _machine(wishes: Wishes, found: Found, cards: int) -> list[Line]:
    are_cards_known = found.driver_state in {"ok", "no_gpu"} and "cards" not in found.missing
    models = Counter(
        model.name if model else card.name or card.uuid for card in found.cards for model in [model_of(card)]
    )
    cpus = [count for count in (found.cpu_count, found.cpu_limit) if count is not None]
    memory = [size for size in (found.memory_total_bytes, found.memory_limit_bytes) if size is not None]
    named = ", ".join(f"{count} × {name}" for name, count in models.items())
    no_cards = _why(found, "cards")
    return [
        judged("cards", "text", None, named or None, missing=no_cards),
        at_least("gpu_count", "count", wishes.get("gpu_count"), cards if are_cards_known else None, missing=no_cards),
        _version("driver", wishes.get("driver_version"), found.driver_version, no_cards),
        _version("cuda", wishes.get("cuda_version"), found.cuda_version, no_cards),
        judged("cpu_model", "text", None, found.cpu_model or None, missing=_why(found, "host")),
        at_least("cpu_count", "count", wishes.get("cpu_count"), min(cpus, default=None), missing=_why(found, "host")),
        at_least(
            "host_memory",
            "bytes",
            wishes.get("memory_bytes"),
            min(memory, default=None),
            tolerance=MEMORY_TOLERANCE,
            missing=_why(found, "host"),
        ),
    ]


def _version(code: str, expected: Expected | None, found: str, missing: str) -> Line:
    """Return the line of a version that may not be older; one that is no version at all is not proven."""
    is_met = expected is not None and _numbers(found) >= _numbers(str(expected.value))
    unclear = "no_version" if found and expected is not None and not _numbers(str(expected.value)) else ""
    return judged(code, "text", expected, found or None, is_met=is_met, missing=missing, unclear=unclear)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d{1,9}", version)]


def _disk(wishes: Wishes, disk: DiskFound) -> list[Line]:
    kind = wishes.get("disk_kind")
    rank = _SPEED_OF_DISK.get(disk.kind)
    is_met = kind is not None and rank is not None and rank >= _SPEED_OF_DISK.get(str(kind.value), 0)
    no_read = disk.missing.get("read", NOT_MEASURED)
    read = at_least(
        "disk_read",
        "bytes_per_second",
        wishes.get("disk_read_bytes_per_second"),
        disk.read_bytes_per_second if disk.method != "cached" else None,
        tolerance=SPEED_TOLERANCE,
        missing="cached" if disk.method == "cached" else no_read,
    )
    # What a virtual machine calls its disk says nothing about what lies below it.
    unclear = "virtual" if disk.kind == "virtual" else ""
    return [
        judged(
            "disk_kind",
            "text",
            kind,
            disk.kind or None,
            is_met=is_met,
            missing=disk.missing.get("kind", NOT_MEASURED),
            unclear=unclear,
        ),
        at_least(
            "disk_size", "bytes", wishes.get("disk_bytes"), disk.total_bytes, tolerance=DISK_TOLERANCE, missing=no_read
        ),
        read,
    ]


def _routes(wishes: Wishes, found: Found) -> list[Line]:
    """Return the lines of the way to the panel and, when one was chosen, to an address: expectations are about the latter."""
    nobody = Wishes(type(wishes.typed)(), type(wishes.lease)())
    lost = RouteFound(missing=dict.fromkeys(("round_trip", "hops", "downlink", "uplink"), _why(found, "panel")))
    lines = _route("panel", nobody if found.target is not None else wishes, found.panel or lost)
    if found.target is not None:
        lines += _route("target", wishes, found.target)
    return lines


def _route(name: str, wishes: Wishes, route: RouteFound) -> list[Line]:
    def missing(what: str) -> str:
        return route.missing.get(what, NOT_MEASURED)

    lines = [
        at_most(
            f"{name}_round_trip",
            "ms",
            wishes.get("round_trip_ms"),
            route.round_trip_ms,
            tolerance=ROUND_TRIP_TOLERANCE,
            missing=missing("round_trip"),
        ),
        at_most(f"{name}_hops", "count", wishes.get("hops"), route.hops, missing=missing("hops")),
    ]
    for direction in ("downlink", "uplink"):
        field = f"{direction}_bytes_per_second"
        rate = getattr(route, field)
        wish = wishes.get(field)
        lines.append(
            at_least(
                f"{name}_{direction}",
                "bytes_per_second",
                wish,
                rate,
                tolerance=SPEED_TOLERANCE,
                missing=missing(direction),
            )
        )
    return lines


def _clock(found: Found) -> Line:
    """The skew passes or fails only when it does so for all that the measurement's own error leaves open."""
    skew, error = found.clock_skew_ms, found.clock_skew_error_ms or 0.0
    off = abs(skew) if skew is not None else None
    is_unclear = off is not None and abs(off - CLOCK_SKEW_MS) < error
    return judged(
        "clock_skew",
        "ms",
        Expected(CLOCK_SKEW_MS, Source.RULE),
        off,
        is_met=off is not None and off <= CLOCK_SKEW_MS,
        missing=found.missing.get("clock_skew") or _why(found, "panel"),
        unclear="between" if is_unclear else "",
    )
