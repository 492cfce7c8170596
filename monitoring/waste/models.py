"""What each card does with its time, and the times in which it had nothing to do."""

from django.db import models

from fleet.models import Gpu
from monitoring.waste.enums import Ground, Use


class GpuUse(models.Model):
    """The use of one card over its last hour, and what is learned of it.

    recent: its last minutes up to `judged_until`, one character each (`monitoring.waste.runs`), oldest first, at most sixty.
    since: when this use began. worked_at: the end of the last minute in which it worked, null before the first.
    bare_watts, loaded_watts: what it draws while it waits, null until learned from bare_powers and loaded_powers, the
    averages of its newest quiet minutes.
    """

    gpu = models.OneToOneField(Gpu, on_delete=models.CASCADE, primary_key=True, related_name="use")
    use = models.CharField(max_length=16, choices=Use.choices, default=Use.UNKNOWN)
    ground = models.CharField(max_length=16, choices=Ground.choices, default=Ground.NO_READINGS)
    since = models.DateTimeField()
    judged_until = models.DateTimeField()
    recent = models.CharField(max_length=60, blank=True, default="")
    quiet_minutes = models.PositiveSmallIntegerField(default=0)
    known_minutes = models.PositiveSmallIntegerField(default=0)
    worked_at = models.DateTimeField(null=True)
    bare_watts = models.FloatField(null=True)
    loaded_watts = models.FloatField(null=True)
    bare_powers = models.JSONField(default=list)
    loaded_powers = models.JSONField(default=list)

    class Meta:
        db_table = "gpu_use"

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.use}"


class IdleInterval(models.Model):
    """A time of at least ten minutes in which a card had nothing to do, with what was seen.

    ended_at: the end of its last quiet minute so far; is_open: it may go on. quiet_minutes: of it, those that were told to be
    quiet; the others are not known. evidence: the most of {work_percent, memory_share}, the newest {power_watts,
    power_limit_watts, processes}, null for what was not read.
    """

    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE, related_name="idle_intervals")
    use = models.CharField(max_length=16, choices=Use.choices)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    is_open = models.BooleanField(default=True)
    quiet_minutes = models.PositiveIntegerField()
    evidence = models.JSONField(default=dict)

    class Meta:
        db_table = "idle_interval"
        constraints = [
            models.UniqueConstraint(fields=["gpu"], condition=models.Q(is_open=True), name="idleinterval_one_open"),
            models.CheckConstraint(
                condition=models.Q(ended_at__gt=models.F("started_at")), name="idleinterval_forward"
            ),
        ]
        indexes = [models.Index(fields=["gpu", "started_at"], name="idleinterval_by_gpu")]

    def __str__(self) -> str:
        return f"{self.gpu_id} {self.use} from {self.started_at:%Y-%m-%d %H:%M}"
