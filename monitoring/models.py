"""Tables of the time-series store that have a fixed shape.

The samples and rollups have one column for each metric and live in SQL migrations alone: `gpu_sample`, `host_sample`
and `engine_sample` (daily partitions), `<prefix>_rollup_<seconds>`; see `monitoring/store/tables.py`.
`kind` is `SubjectKind.code` everywhere: 1 a GPU (subject_id is fleet.Gpu.id), 2 a server's host (fleet.Server.id),
3 a replica's engine (its id in the app above).
Hours and days are whole numbers since 1970-01-01 UTC.
"""

from django.db import models

from monitoring.alerts.models import Episode, EpisodeEntry, Rule, RuleOverride, RuleStanding, Silence
from monitoring.delivery.models import Channel, Heartbeat, Notification, NotificationAttempt
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.engines.models import EngineHour
from monitoring.golive_runs.models import GoLivePart, GoLivePiece, GoLiveRun
from monitoring.probing.models import Probe, ProbeHour
from monitoring.waste.models import GpuUse, IdleInterval

__all__ = [
    "Channel", "DiagnosisReport", "DirtyHour", "EngineHour", "Episode", "EpisodeEntry", "GoLivePart", "GoLivePiece",
    "GoLiveRun", "GpuUse", "Heartbeat", "IdleInterval", "LatestSample", "Notification", "NotificationAttempt", "Probe",
    "ProbeHour", "Rule", "RuleOverride", "RuleStanding", "SealedDay", "SealedHour", "SeriesProgress", "Silence",
]  # fmt: skip


class LatestSample(models.Model):
    """The newest sample of each subject, so that no list reads the samples themselves.

    Rewritten with every report; no index covers what changes and pages keep room, so updates stay within their page
    (HOT). values: little-endian 4-byte floats in the order of the catalogue, NaN where there was none.
    """

    pk = models.CompositePrimaryKey("kind", "subject_id")
    kind = models.SmallIntegerField()
    subject_id = models.IntegerField()
    at = models.DateTimeField()
    received_at = models.DateTimeField()
    values = models.BinaryField()
    clock_event_reasons = models.IntegerField(null=True)
    performance_state = models.SmallIntegerField(null=True)

    class Meta:
        db_table = "latest_sample"

    def __str__(self) -> str:
        return f"{self.kind}/{self.subject_id} at {self.at:%Y-%m-%d %H:%M:%S}"


class DirtyHour(models.Model):
    """An hour that got samples after it was rolled up or sealed: written in the transaction that stores them.

    Only ever inserted by ingest and deleted by the job that redid the hour, so that neither waits for the other.
    """

    kind = models.SmallIntegerField()
    subject_id = models.IntegerField()
    hour = models.IntegerField()

    class Meta:
        db_table = "dirty_hour"

    def __str__(self) -> str:
        return f"{self.kind}/{self.subject_id} hour {self.hour}"


class SeriesProgress(models.Model):
    """How far one step of the store has come: everything before `until_ms` (Unix ms) is done.

    step: seconds of a rollup's slot (60, 300), or `hour` for closing; see monitoring/store/progress.py.
    """

    pk = models.CompositePrimaryKey("kind", "step")
    kind = models.SmallIntegerField()
    step = models.CharField(max_length=8)
    until_ms = models.BigIntegerField()

    class Meta:
        db_table = "series_progress"

    def __str__(self) -> str:
        return f"{self.kind}/{self.step} until {self.until_ms}"


class SealedHour(models.Model):
    """All samples of one subject in one closed hour, compressed (monitoring/store/codec.py); `samples` counts them."""

    pk = models.CompositePrimaryKey("kind", "subject_id", "hour")
    kind = models.SmallIntegerField()
    subject_id = models.IntegerField()
    hour = models.IntegerField()
    samples = models.IntegerField()
    data = models.BinaryField()

    class Meta:
        db_table = "sealed_hour"

    def __str__(self) -> str:
        return f"{self.kind}/{self.subject_id} hour {self.hour}: {self.samples}"


class SealedDay(models.Model):
    """One metric of one subject over one closed day, compressed; `metric` is its place in the catalogue, -1 the times."""

    pk = models.CompositePrimaryKey("kind", "subject_id", "day", "metric")
    kind = models.SmallIntegerField()
    subject_id = models.IntegerField()
    day = models.IntegerField()
    metric = models.SmallIntegerField()
    data = models.BinaryField()

    class Meta:
        db_table = "sealed_day"

    def __str__(self) -> str:
        return f"{self.kind}/{self.subject_id} day {self.day} metric {self.metric}"
