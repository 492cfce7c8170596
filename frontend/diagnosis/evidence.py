"""What a report rests on, as tables and drawings: places side by side, rounds, lengths, concurrency, the machine."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _

from fleet.agent.probes.result import ProbeResult
from fleet.agent.rounds.plan import Found
from frontend import formatting
from frontend.diagnosis.words import PHASES
from frontend.plots import TICKS, Line, Mark, Plot, plot_of, value_ticks
from monitoring.diagnosing.judging import found_of
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import PANEL, Place, measure_for
from monitoring.diagnosing.surroundings import Surroundings
from monitoring.knee import Step, knee_of

STYLES: Final = ("p99", "second", "third", "p95", "p50")


@dataclass(frozen=True, slots=True)
class Cell:
    """A phase at one place: its median and how much of the longest one that is, 0 to 100. None: it did not happen."""

    ms: float | None
    percent: float


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase at every place."""

    label: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Column:
    """One place. cold, warm: medians of what the objective is about; failed: rounds without a good answer."""

    name: str
    role: str
    rounds: int
    failed: int
    cold_ms: float | None
    p95_ms: float | None
    warm_ms: float | None


@dataclass(slots=True)
class Drawing:
    """A drawing with the table of the same numbers. head, rows: words."""

    title: str
    summary: str
    plot: Plot | None
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default_factory=list)


def columns_of(report: DiagnosisReport) -> tuple[list[Column], list[Phase]]:
    """Return the places with what they found, and each phase side by side."""
    found = found_of(report)
    measure = measure_for(report)
    columns = [_column(place, one, measure) for place, one in found]
    phases: list[Phase] = []
    for name, label in PHASES:
        medians = [
            _median(getattr(one.cold, name) for one in each.rounds if one.cold.outcome == "ok") for _p, each in found
        ]
        longest = max((ms for ms in medians if ms is not None), default=0.0)
        if any(ms is not None for ms in medians):
            phases.append(
                Phase(str(label), [Cell(ms, 100 * ms / longest if ms and longest else 0.0) for ms in medians])
            )
    return columns, phases


def place_name(place: Place) -> str:
    """Return a place in words."""
    name = _("The panel") if place.key == PANEL else place.name
    return _("%(name)s, the engine’s machine") % {"name": name} if place.role == "host" else name


def _column(place: Place, found: Found, measure: str) -> Column:
    cold = [ms for one in found.rounds if (ms := _judged(one.cold, measure)) is not None]
    warm = [ms for one in found.rounds if one.warm is not None and (ms := _judged(one.warm, measure)) is not None]
    return Column(
        name=place_name(place),
        role=place.role,
        rounds=len(found.rounds),
        failed=sum(one.cold.outcome != "ok" for one in found.rounds),
        cold_ms=_median(cold),
        p95_ms=_ranked(cold, 0.95),
        warm_ms=_median(warm),
    )


def _judged(result: ProbeResult, measure: str) -> float | None:
    ms: float | None = getattr(result, f"{measure}_ms")
    return ms if result.outcome == "ok" else None


def _median(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _ranked(values: Sequence[float], q: float) -> float | None:
    ordered = sorted(values)
    return ordered[max(-int(-q * len(ordered) // 1), 1) - 1] if ordered else None


def rounds_drawing(report: DiagnosisReport) -> Drawing | None:
    """Return every round of every place, with the objective and what began or was deployed meanwhile."""
    found = found_of(report)
    if not found:
        return None
    measure = measure_for(report)
    lines = [
        Line(
            place_name(place),
            STYLES[number % len(STYLES)],
            [(float(one.slot), _judged(one.cold, measure)) for one in each.rounds],
        )
        for number, (place, each) in enumerate(found)
    ]
    last = max(report.rounds - 1, 1)
    plot, top = plot_of(lines, begin=0.0, end=float(last), limit=report.threshold_ms)
    plot.y_ticks = [_ms(value) for value in value_ticks(top)]
    plot.x_ticks = [str(round(1 + last * k / (TICKS - 1))) for k in range(TICKS)]
    plot.limit_label = _("objective %(ms)s") % {"ms": _ms(report.threshold_ms)}
    plot.marks = _marks(report, last)
    slots = sorted({one.slot for _place, each in found for one in each.rounds})
    tables = [{one.slot: _judged(one.cold, measure) for one in each.rounds} for _place, each in found]
    return Drawing(
        title=_("Round by round"),
        summary=_(
            "Each round asks every place at nearly the same time, so that what changes meanwhile meets all of them."
        ),
        plot=plot,
        head=[_("Round"), *(line.label for line in lines)],
        rows=[[str(slot + 1), *(_ms(table.get(slot)) for table in tables)] for slot in slots],
    )


def _marks(report: DiagnosisReport, last: int) -> list[Mark]:
    begin = report.begin_at.timestamp()
    words = {"deploy": _("A deploy"), "cold_start": _("A replica that starts")}
    places = [
        ((marker.begin - begin) / report.slot_seconds, words[marker.cause])
        for marker in Surroundings.from_json(report.evidence).markers
    ]
    return [Mark(max(at, 0.0) / last * 1000.0, title, "warning") for at, title in places if at <= last]


def lengths_drawing(report: DiagnosisReport, numbers: Mapping[str, float | None]) -> Drawing | None:
    """Return latencies against prompt lengths, with the line through them."""
    lengths = [one for _place, each in found_of(report) for one in each.lengths]
    if not lengths:
        return None
    medians = [(float(one.tokens), statistics.median(one.latencies_ms)) for one in lengths]
    end = max(tokens for tokens, _ms_ in medians)
    lines = [Line(_("median"), "p99", medians)]
    slope, intercept = numbers.get("slope_ms_per_token"), numbers.get("intercept_ms")
    if slope is not None and intercept is not None:
        lines.append(
            Line(_("line through them"), "second", [(0.0, max(intercept, 0.0)), (end, intercept + slope * end)])
        )
    plot, top = plot_of(lines, begin=0.0, end=end)
    plot.y_ticks = [_ms(value) for value in value_ticks(top)]
    plot.x_ticks = [f"{end * k / (TICKS - 1):,.0f}" for k in range(TICKS)]
    share = numbers.get("prompt_share")
    summary = _("Prompts of growing length, one at a time, on the engine’s machine.")
    if share is not None:
        summary += " " + _("The prompt explains %(share)s of a usual request.") % {"share": _share(share)}
    return Drawing(
        title=_("By length of the prompt"),
        summary=summary,
        plot=plot,
        head=[_("Tokens"), _("Requests"), _("Shortest"), _("Median"), _("Longest")],
        rows=[
            [f"{one.tokens:,}", str(len(one.latencies_ms)), _ms(min(one.latencies_ms)),
             _ms(statistics.median(one.latencies_ms)), _ms(max(one.latencies_ms))]
            for one in lengths
        ],
    )  # fmt: skip


def steps_drawing(report: DiagnosisReport) -> Drawing | None:
    """Return throughput and latency by the number of requests at once, with the knee."""
    steps = [
        Step(one.concurrency, one.latency_ms, one.throughput_per_second)
        for _place, each in found_of(report)
        for one in each.steps
        if one.n
    ]
    if not steps:
        return None
    knee = knee_of(steps)
    end = float(max(step.concurrency for step in steps))
    line = Line(
        _("requests per second"), "p99", [(float(step.concurrency), step.throughput_per_second) for step in steps]
    )
    plot, top = plot_of([line], begin=0.0, end=end)
    plot.y_ticks = [f"{value:,.3g}" for value in value_ticks(top)]
    plot.x_ticks = [f"{end * k / (TICKS - 1):.3g}" for k in range(TICKS)]
    if knee is not None:
        plot.marks = [Mark(knee.concurrency / end * 1000.0, _("The knee"), "warning")]
        summary = _("From %(n)s at once on, more of them bring no more throughput (the knee).") % {
            "n": knee.concurrency
        }
    else:
        summary = _("Throughput still grew at the last step: there is no knee within it.")
    return Drawing(
        title=_("By requests at once"),
        summary=summary,
        plot=plot,
        head=[_("At once"), _("Requests per second"), _("Latency"), _("In flight by Little’s law")],
        rows=[
            [str(step.concurrency), f"{step.throughput_per_second:.3g}", _ms(step.latency_ms), f"{step.in_flight:.2g}"]
            for step in steps
        ],
    )


def machine_rows(numbers: Mapping[str, float | None], report: DiagnosisReport) -> list[tuple[str, str | None]]:
    """Return what the engine's machine said of the same minutes; None where it does not tell."""
    readings = len(Surroundings.from_json(report.evidence).gpus)
    # Until the first token there is no decoding: that is no share of 0, the question does not arise.
    decoding = None if measure_for(report) == "ttft" else numbers.get("decode_share")
    shares = [
        (_("Waiting in the engine"), numbers.get("queue_share")),
        (_("Reading the prompt"), numbers.get("prefill_share")),
        (_("Producing tokens"), decoding),
        (_("Cards at work (SM activity)"), numbers.get("sm_active")),
        (_("Memory of the cards busy"), numbers.get("dram_active")),
        (_("Tensor cores busy"), numbers.get("tensor_active")),
        (_("Readings with clocks held back"), numbers.get("throttled_share")),
        (_("Power of the limit"), numbers.get("power_of_limit")),
        (_("Processors busy"), numbers.get("cpu")),
    ]
    counts = [(_("Requests running"), numbers.get("running")), (_("Requests waiting"), numbers.get("waiting"))]
    rows: list[tuple[str, str | None]] = [(label, None if value is None else _share(value)) for label, value in shares]
    rows += [(label, None if value is None else f"{value:.3g}") for label, value in counts]
    rows.append((_("Readings of cards"), f"{readings:,}" if readings else None))
    return rows


def _ms(value: float | None) -> str:
    return "—" if value is None else formatting.with_unit(value, "latency")


def _share(value: float) -> str:
    return f"{value * 100:.0f}%"
