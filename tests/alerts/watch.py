"""A watched fleet with a clock of its own: results of probes are stored, rounds are run, and what was told can be asked."""

from datetime import UTC, datetime, timedelta

from django.db import connection

from fleet.agent.probes.result import ProbeResult
from monitoring.alerts.evaluator import Evaluator
from monitoring.alerts.models import Episode, EpisodeEntry
from monitoring.alerts.services import rules_ensure
from monitoring.delivery.models import Channel, Notification
from monitoring.probing.services import probe_create
from monitoring.probing.storing import results_store
from panel.core.clock import now
from tests.fleet.factories import OPERATOR

TARGET = {"kind": "http", "host": "127.0.0.1", "port": 9, "path": "/health"}
STEP = timedelta(seconds=30)


def partition(table, day):
    """Make a day's partition within the test's transaction, so that tests run at any time of the day."""
    first, last = day.isoformat(), (day + timedelta(days=1)).isoformat()
    name = f"{table}_p{day:%Y%m%d}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table}"
            f" FOR VALUES FROM ('{first} 00:00:00+00') TO ('{last} 00:00:00+00')"
        )


class Watch:
    """One probe (or more) and the evaluator. at: the time of the last step, in the past, on a slot's edge."""

    def __init__(self, *, hours=7, channel=True):
        start = now() - timedelta(hours=hours)
        self.at = datetime.fromtimestamp(int(start.timestamp()) // 1800 * 1800, UTC)
        for table in ("probe_result", "probe_chunk"):
            for day in {self.at.date(), now().date()}:
                partition(table, day)
        rules_ensure(at=self.at)
        self.evaluator = Evaluator()
        self.places = [0]
        self.probes = []
        if channel:
            self.channel = Channel.objects.create(
                name="program", kind="webhook", settings={"url": "https://example.test/"}, created_at=self.at,
                created_by_name="test",
            )  # fmt: skip

    def probe(self, name="chat", **changes):
        given = {"target": TARGET, "threshold_ms": 1000.0} | changes
        probe = probe_create(actor=OPERATOR, name=name, **given)
        probe.created_at = self.at
        probe.save(update_fields=["created_at"])
        self.probes.append(probe)
        return probe

    def step(self, e2e=100.0, *, outcome="ok", suspect=False, probes=None, places=None, evaluate=True):
        """One probe of each place, 30 s later."""
        self.at += STEP
        for place in self.places if places is None else places:
            found = [
                self.result(probe, e2e, outcome=outcome, suspect=suspect)
                for probe in (self.probes if probes is None else probes)
            ]
            results_store(server_id=place, results=found, known={each.target for each in found}, at=self.at)
        return self.round() if evaluate else None

    def result(self, probe, e2e, *, outcome, suspect):
        durations = {"e2e_ms": e2e, "ttfb_ms": e2e / 2, "total_ms": e2e} if outcome == "ok" else {}
        return ProbeResult(
            target=probe.pk, kind="http", vantage="panel", connection="cold", scheduled_ms=0,
            started_ms=round(self.at.timestamp() * 1000) - 5_000, outcome=outcome, is_suspect=suspect, **durations,
        )  # fmt: skip

    def steps(self, count, *, every=4, **changes):
        """Many steps with a round at each `every`th, and at the last."""
        for number in range(count):
            self.step(evaluate=number % every == every - 1 or number == count - 1, **changes)

    def wait(self, minutes, *, every=1):
        """Let time go by without a result, a round each so many minutes."""
        for _ in range(int(minutes / every)):
            self.at += timedelta(minutes=every)
            self.round()

    def round(self):
        return self.evaluator.evaluate(at=self.at)

    def open(self, **wanted):
        return list(Episode.objects.filter(closed_at=None, resolved_at=None, **wanted).order_by("pk"))

    def one(self, **wanted):
        [episode] = Episode.objects.filter(**wanted)
        return episode

    def told(self, episode):
        """What was queued of an episode, in order."""
        rows = Notification.objects.filter(topic=f"episode:{episode.pk}").order_by("seq")
        return [row.kind for row in rows]

    def timeline(self, episode):
        return [entry.kind for entry in EpisodeEntry.objects.filter(episode=episode).order_by("pk")]
