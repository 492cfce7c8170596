"""A finished report as its page shows it: the sentence, the next step, how sure, what would change it."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from frontend.diagnosis import evidence
from frontend.diagnosis.words import METRICS, STOPS, tone_of
from monitoring.diagnosing.judging import found_of
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosis import words
from monitoring.diagnosis.report import Diagnosis


@dataclass(frozen=True, slots=True)
class Shown:
    """A report in words, with its evidence."""

    tone: str
    name: str
    sentence: str
    next_step: str
    affected: str
    level: str
    sure: str
    others: Sequence[tuple[str, str]]
    also: Sequence[str]
    changes: Sequence[str]
    missing: Sequence[str]
    columns: Sequence[evidence.Column]
    phases: Sequence[evidence.Phase]
    drawings: Sequence[evidence.Drawing]
    machine: Sequence[tuple[str, str | None]]
    loads: str


def show(report: DiagnosisReport) -> Shown | None:
    """Return what the page shows of a report; None before it is done."""
    if not report.diagnosis:
        return None
    found = Diagnosis.from_json(report.diagnosis)
    columns, phases = evidence.columns_of(report)
    drawings = (
        evidence.rounds_drawing(report),
        evidence.lengths_drawing(report, found.numbers),
        evidence.steps_drawing(report),
    )
    return Shown(
        tone=tone_of(found.verdict),
        name=words.verdict_name(found.verdict),
        sentence=words.why(found),
        next_step=words.next_step(found.action),
        affected=words.who_is_affected(found),
        level=words.level_name(found.level),
        sure=_("%(share)s of the resamples of the rounds come to the same.")
        % {"share": f"{found.confidence * 100:.0f}%"},
        others=[(words.verdict_name(verdict), f"{share * 100:.0f}%") for verdict, share in found.alternatives.items()],
        also=[words.verdict_name(verdict) for verdict in found.also],
        changes=[words.what_would_change_it(change) for change in found.changes],
        missing=[words.what_was_missing(limit) for limit in found.limits],
        columns=columns,
        phases=phases,
        drawings=[each for each in drawings if each is not None],
        machine=evidence.machine_rows(found.numbers, report),
        loads=_loads(report),
    )


def _loads(report: DiagnosisReport) -> str:
    """Return what the sweeps took; "" without any."""
    taken = [one for _place, one in found_of(report) if one.requests]
    if report.sweeps is None:
        return ""
    if not taken:
        return _("Sweeps were agreed to and did not begin.")
    said = _("The sweeps took %(requests)s requests, %(tokens)s tokens and %(seconds)s s") % {
        "requests": f"{sum(one.requests for one in taken):,}",
        "tokens": f"{sum(one.tokens for one in taken):,}",
        "seconds": f"{sum(one.seconds for one in taken):.0f}",
    }
    stopped = next((one.stopped for one in taken if one.stopped), "")
    return f"{said} ({STOPS[stopped]})" if stopped in STOPS else said


def objective_of(report: DiagnosisReport) -> str:
    """Return the objective in words."""
    return _("P%(percentile)s of %(metric)s within %(ms)s ms") % {
        "percentile": f"{report.percentile * 100:.0f}",
        "metric": METRICS.get(report.metric, report.metric),
        "ms": f"{report.threshold_ms:,.0f}",
    }
