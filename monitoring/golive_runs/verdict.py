"""The verdict of a run whose places are done: each judged alone, the worst counts."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from monitoring.golive.enums import Outcome
from monitoring.golive.judge import Conditions, Sent, environment_hash, joint, judge
from monitoring.golive.report import judgement_as_json, plan_from_json
from monitoring.golive.saturation import Saturation, saturation_of
from monitoring.golive_runs.asked import Asked
from monitoring.golive_runs.enums import PartState, RunState
from monitoring.golive_runs.models import GoLivePart, GoLiveRun
from monitoring.golive_runs.stepping import AT, E2E, IS_OK, NUMBER, STEP, TOTAL, TPOT, TTFT, steps_from
from monitoring.golive_runs.subjects import facts_now
from monitoring.probing.models import Probe
from monitoring.probing.reading import results
from monitoring.probing.targets import vantage_names
from panel.core.enums import Severity
from panel.core.events import event_write


def run_judge(run: GoLiveRun, *, at: datetime) -> None:
    """End a run with its verdict, in the caller's transaction, who holds it locked."""
    facts = facts_now(run.subject_kind, run.subject_id, run.facts)
    run.has_changed = environment_hash(facts) != run.environment_hash
    asked = msgspec.convert(run.asked, Asked)
    outcomes: list[Outcome] = []
    steps: list[dict[str, Any]] = []
    for part in run.parts.order_by("pk"):
        outcomes.append(_judge_part(part, run, at))
        steps = steps or part.steps
    run.outcome, run.state, run.ended_at = joint(outcomes).value, RunState.ENDED, at
    run.saturation = _saturation(saturation_of(steps_from(steps), asked.most_concurrency)) if steps else {}
    run.save()
    event_write(
        kind="golive.ended",
        severity=Severity.WARNING if run.outcome == Outcome.FAIL else Severity.INFO,
        subject_kind=run.subject_kind,
        subject_id=run.subject_id,
        subject_name=run.subject_name,
        data={"run": run.pk, "outcome": run.outcome},
    )


def _judge_part(part: GoLivePart, run: GoLiveRun, at: datetime) -> Outcome:
    plan = plan_from_json(part.plan)
    begin = run.started_at or run.created_at
    conditions = Conditions(
        loop_lag_p99_ms=part.loop_lag_ms,
        is_vantage_bad=_is_vantage_bad(part.server_id, begin, at),
        has_changed=run.has_changed,
        is_stopped=bool(part.stopped) or part.state == PartState.LOST,
    )
    found = judge(plan, sent_of(part), conditions)
    part.judgement = judgement_as_json(found)
    part.save(update_fields=["judgement"])
    return found.outcome


def sent_of(part: GoLivePart) -> Iterator[Sent]:
    """Give the requests of the plan that were sent; those of steps are not among them."""
    for shots in part.pieces.order_by("sequence").values_list("shots", flat=True).iterator(chunk_size=50):
        for shot in shots:
            if shot[STEP] == 0:
                yield Sent(
                    shot[NUMBER], shot[AT], shot[IS_OK],
                    total_ms=shot[TOTAL], ttft_ms=shot[TTFT], e2e_ms=shot[E2E], tpot_ms=shot[TPOT],
                )  # fmt: skip


def _is_vantage_bad(server_id: int, start: datetime, end: datetime) -> bool:
    """Say whether a control target of this place failed or was slow most of the time; False where there is none."""
    names = vantage_names(server_id)
    for probe in Probe.objects.filter(is_enabled=True, target__is_control=True):
        if names & set(probe.vantages):
            slow_ms = probe.target.get("slow_ms")
            found = [
                each for each in results(probe_id=probe.pk, start=start, end=end) if (each["server"] or 0) == server_id
            ]
            bad = [each for each in found if _is_bad(each, slow_ms)]
            if found and len(bad) * 2 > len(found):
                return True
    return False


def _is_bad(result: Any, slow_ms: float | None) -> bool:
    if result["outcome"] == "skipped":
        return False
    total = result.get("total_ms")
    return result["outcome"] != "ok" or (slow_ms is not None and total is not None and total > slow_ms)


def _saturation(found: Saturation) -> dict[str, Any]:
    knee = found.knee
    return {
        "knee": dataclasses.asdict(knee) if knee is not None else None,
        "best": found.best,
        "best_goodput_per_second": round(found.best_goodput_per_second, 4),
        "stopped_by": found.stopped_by.value if found.stopped_by is not None else None,
        "contradictory": found.contradictory,
    }
