"""Reports in several states, for tests of their pages: measured by agents that do as they are told."""

import msgspec

from fleet.agent.rounds.plan import LengthFound, StepFound
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import places_of, plan_of
from monitoring.diagnosing.starting import diagnosis_start
from panel.core.clock import now
from tests.diagnosing.places import do, do_panel, follow, measured, probe_of, say, served, told
from tests.fleet.factories import OPERATOR


def diagnosed(probe, host, other, *, ttft_ms=300.0, away_ms=310.0, has_sweeps=False):
    """A report that is done."""
    report = diagnosis_start(probe_id=probe.pk, actor=OPERATOR, has_sweeps=has_sweeps)
    if has_sweeps:
        [(order, plan)] = told(host)
        found = msgspec.structs.replace(
            measured(plan, ttft_ms), requests=156, tokens=161_000, seconds=88.0,
            lengths=[
                LengthFound(asked=n, tokens=n, latencies_ms=[20 + 2.5 * n + number for number in range(8)])
                for n in (128, 512, 2048, 8192)
            ],
            steps=[
                StepFound(concurrency=c, latency_ms=max(100.0, 50.0 * c), throughput_per_second=min(10.0 * c, 20.0), n=4 * c)
                for c in (1, 2, 4, 8, 16)
            ],
        )  # fmt: skip
        say(host, order, "claimed")
        say(host, order, "succeeded", result=msgspec.to_builtins(found))
    do(host, ttft_ms)
    do(other, away_ms, tcp_ms=10.0)
    do_panel(report, away_ms, plan_of(report, next(each for each in places_of(report) if each.key == "panel")))
    follow()
    report.refresh_from_db()
    return report


def diagnosing_world():
    """An endpoint with a probe; a report with sweeps, a healthy one, one that failed, and one under way."""
    endpoint, host, other = served()
    probe = probe_of(endpoint)
    slow = diagnosed(probe, host, other, has_sweeps=True)
    healthy = diagnosed(probe, host, other, ttft_ms=50.0, away_ms=60.0)
    failed = DiagnosisReport.objects.get(pk=healthy.pk)
    failed.pk, failed.state, failed.failure, failed.detail = None, "failed", "no_host", "crashed: no room"
    failed.diagnosis, failed.verdict, failed.level, failed.found = None, "", "", {}
    failed.ended_at = now()
    failed.save()
    running = diagnosis_start(probe_id=probe.pk, actor=OPERATOR)
    return {"endpoint": endpoint, "probe": probe, "slow": slow, "healthy": healthy, "failed": failed, "running": running,
            "host": host, "other": other}  # fmt: skip
