"""What is probed, and hourly histograms that outlive the results.

Results (`probe_result`) and their chunks of five minutes (`probe_chunk`) are daily partitions that live in SQL alone; see
`monitoring/probing/tables.py`. server_id is 0 for the panel itself, everywhere.
"""

from django.db import models

from panel.core.crypto import EncryptedTextField


class Probe(models.Model):
    """One target, probed from some places every `interval_seconds`.

    target: a `fleet.agent.probes.target.Target` as JSON, without id, interval and bearer. vantages: `panel`, `agents` (every
    one), `server:<id>`. subject_kind, subject_id: what it is about (`endpoint`, its id), if anything of ours.
    threshold_ms: what its 99th percentile shall stay below, of `metric` (e2e, ttft, ttfb). run: goes up when somebody wants a
    result now; agents probe at once when they see another number.
    """

    name = models.CharField(max_length=100, unique=True)
    target = models.JSONField()
    bearer = EncryptedTextField(blank=True, default="")
    interval_seconds = models.FloatField(default=30.0)
    vantages = models.JSONField(default=list)
    subject_kind = models.CharField(max_length=16, blank=True, default="")
    subject_id = models.BigIntegerField(null=True)
    metric = models.CharField(max_length=8, default="e2e")
    threshold_ms = models.FloatField(null=True)
    is_enabled = models.BooleanField(default=True)
    run = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)

    class Meta:
        indexes = [models.Index(fields=["subject_kind", "subject_id"], name="probe_subject")]

    def __str__(self) -> str:
        return self.name


class ProbeHour(models.Model):
    """The histogram of one closed hour: monitoring.histograms.LogHistogram as JSON. Kept for ever."""

    probe = models.ForeignKey(Probe, on_delete=models.CASCADE, related_name="hours")
    server_id = models.IntegerField()
    connection = models.SmallIntegerField()
    metric = models.SmallIntegerField()
    hour_at = models.DateTimeField()
    histogram = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["probe", "server_id", "connection", "metric", "hour_at"], name="probehour_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.probe_id} {self.hour_at}"
