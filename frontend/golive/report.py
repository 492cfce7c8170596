"""One go-live test as its page shows it: places with their verdicts, curves, steps, failures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from django.utils.translation import gettext as _

from endpoints.models import Endpoint, Rollout
from frontend.formatting import with_unit
from frontend.golive import words
from frontend.plots import Line, Plot, plot_of, value_ticks
from frontend.probing.words import outcome_word, place_names
from monitoring.golive.enums import Outcome, Stop
from monitoring.golive.judge import Judgement
from monitoring.golive.report import judgement_from_json
from monitoring.golive.words import STOPS, outcome_name, reasons
from monitoring.golive_runs.models import GoLivePart, GoLiveRun
from monitoring.golive_runs.reading import shots_of
from monitoring.golive_runs.stepping import AT, IS_OK, NUMBER, STEP

BINS: Final = 80
MOST_FAILURES: Final = 8
_TIMES: Final = {"ttft": 6, "total": 5, "e2e": 7}
_OUTCOME, _DETAIL = 10, 11


@dataclass(frozen=True, slots=True)
class PartView:
    """One place: how far it is, and what it proved. judgement: None until the run ended."""

    part: GoLivePart
    name: str
    phase: str
    percent: int
    judgement: Judgement | None
    reasons: Sequence[str]
    lost: str
    plot: Plot | None = None
    failures: Sequence[tuple[str, str, int]] = field(default_factory=list)

    @property
    def outcome_word(self) -> str:
        """Return the verdict in words."""
        return outcome_name(self.judgement.outcome) if self.judgement is not None else ""

    @property
    def tone(self) -> str:
        """Return the verdict's mark."""
        return words.TONES.get(self.judgement.outcome, "unknown") if self.judgement is not None else "progress"

    @property
    def arrivals_percent(self) -> float | None:
        """Return the achieved rate of arrivals in percent of the planned one."""
        return self.judgement.arrivals_share * 100 if self.judgement is not None else None


def outcome_words(run: GoLiveRun) -> str:
    """Return what a run came to, or how far it is."""
    return outcome_name(Outcome(run.outcome)) if run.outcome else str(run.get_state_display())


def rows_of(runs: Sequence[GoLiveRun]) -> list[dict[str, Any]]:
    """Return runs as rows of a list."""
    return [
        {
            "run": run,
            "tone": words.run_tone(run.state, run.outcome),
            "word": outcome_words(run),
            "promise": promise_words(run),
        }
        for run in runs
    ]


def promise_words(run: GoLiveRun) -> str:
    """Return what was to be proven, in one line."""
    asked: Mapping[str, Any] = run.asked
    limits = [("P95", asked.get("p95_ms", 500.0)), ("P99", asked.get("p99_ms", 1_000.0))]
    told = [f"{name} ≤ {with_unit(ms, 'latency')}" for name, ms in limits if ms is not None]
    measure = words.MEASURES[asked.get("measure", "ttft")]
    return _("%(measure)s: %(limits)s at %(rate)s/s") % {
        "measure": measure, "limits": ", ".join(told), "rate": f"{asked['peak_per_second']:g}",
    }  # fmt: skip


def parts_of(run: GoLiveRun, *, is_whole: bool) -> list[PartView]:
    """Return the places of a run. is_whole: with curves and failures, which reads every request."""
    parts = list(run.parts.defer("bearer").order_by("pk"))
    names = place_names({part.server_id for part in parts})
    return [_part(part, run, names, is_whole=is_whole) for part in parts]


def _part(part: GoLivePart, run: GoLiveRun, names: Mapping[int, str], *, is_whole: bool) -> PartView:
    judgement = judgement_from_json(part.judgement) if part.judgement else None
    moments = part.plan.get("at_seconds") or [0.0]
    shots = shots_of(part) if is_whole else []
    stopped = words.STOPPED.get(part.stopped)
    lost = words.lost_words(part.detail) if part.detail else str(stopped or "")
    return PartView(
        part=part,
        name=words.place_word(part.server_id, names),
        phase=str(words.PHASES.get(part.phase, part.phase)),
        percent=min(round(100 * part.seconds / max(moments[-1], 1e-9)), 100),
        judgement=judgement,
        reasons=reasons(judgement) if judgement is not None else [],
        lost=lost,
        plot=_plot(shots, part, run) if shots else None,
        failures=_failures(shots),
    )


def _plot(shots: Sequence[Sequence[Any]], part: GoLivePart, run: GoLiveRun) -> Plot:
    """Return the median and the largest time of each piece of the measured load, from when requests were due."""
    moments: Sequence[float] = part.plan["at_seconds"]
    first = len(moments) - part.plan["n"]
    begin, end = moments[first], moments[-1]
    place = _TIMES[run.asked.get("measure", "ttft")]
    width = max((end - begin) / BINS, 1e-9)
    bins: dict[int, list[float]] = {}
    for shot in shots:
        if shot[STEP] == 0 and shot[NUMBER] >= first and shot[IS_OK] and shot[place] is not None:
            due = moments[shot[NUMBER]]
            late = max(shot[AT] - due, 0.0) * 1000
            bins.setdefault(min(int((due - begin) / width), BINS - 1), []).append(shot[place] + late)
    middles = [(begin + (number + 0.5) * width, median(values)) for number, values in sorted(bins.items())]
    largest = [(begin + (number + 0.5) * width, max(values)) for number, values in sorted(bins.items())]
    limit = run.asked.get("p99_ms", 1_000.0) or run.asked.get("p95_ms", 500.0)
    lines = [Line(_("median"), "p50", middles, gap=width * 8), Line(_("largest"), "p99", largest, gap=width * 8)]
    plot, top = plot_of(lines, begin=begin, end=max(end, begin + 1e-6), limit=limit)
    plot.y_ticks = [with_unit(value, "latency") for value in value_ticks(top)]
    plot.x_ticks = [f"{(end - begin) * k / 4:.0f} s" for k in range(5)]
    plot.limit_label = _("limit %(limit)s") % {"limit": with_unit(limit, "latency")}
    return plot


def _failures(shots: Sequence[Sequence[Any]]) -> list[tuple[str, str, int]]:
    """Return what failed and how often, the most frequent first."""
    found = Counter((shot[_OUTCOME], shot[_DETAIL]) for shot in shots if not shot[IS_OK])
    limit = _("Not sent: too many were under way")
    return [
        (limit if outcome == "in_flight_limit" else outcome_word(outcome), detail, count)
        for (outcome, detail), count in found.most_common(MOST_FAILURES)
    ]


@dataclass(frozen=True, slots=True)
class StepsView:
    """The steps of concurrency with the knee. stopped: why there is no further one."""

    rows: Sequence[Mapping[str, Any]]
    knee: int | None
    best: int | None
    best_goodput: float
    stopped: str
    plot: Plot
    contradictory: Sequence[int]


def steps_of(run: GoLiveRun, parts: Sequence[PartView]) -> StepsView | None:
    """Return the steps of the place that took them; None without any."""
    rows = next((view.part.steps for view in parts if view.part.steps), None)
    if not rows:
        return None
    found: Mapping[str, Any] = run.saturation
    knee = (found.get("knee") or {}).get("concurrency")
    stop = found.get("stopped_by")
    places = list(range(len(rows)))
    lines = [
        Line(_("answered per second"), "p99", [(float(at), rows[at]["throughput_per_second"]) for at in places]),
        Line(_("good per second"), "second", [(float(at), rows[at]["goodput_per_second"]) for at in places]),
    ]
    plot, top = plot_of(lines, begin=0.0, end=max(float(len(rows) - 1), 1e-6))
    plot.y_ticks = [f"{value:g}/s" for value in value_ticks(top)]
    plot.x_ticks = [str(row["concurrency"]) for row in rows]
    return StepsView(
        rows=rows,
        knee=knee,
        best=found.get("best"),
        best_goodput=float(found.get("best_goodput_per_second") or 0.0),
        stopped=str(STOPS[Stop(stop)]) if stop else "",
        plot=plot,
        contradictory=found.get("contradictory") or [],
    )


def links_of(run: GoLiveRun) -> dict[str, Any]:
    """Return the endpoint and the rollout that a run is about, as far as they are there. Two queries."""
    endpoint = (
        Endpoint.objects.filter(pk=run.subject_id, deleted_at=None).first() if run.subject_kind == "endpoint" else None
    )
    rollout = Rollout.objects.filter(pk=run.rollout_id or 0).select_related("to_revision").first()
    return {"endpoint": endpoint, "rollout": rollout}
