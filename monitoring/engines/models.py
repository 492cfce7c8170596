"""Hours of engines' histograms. Their minutes (`engine_histogram`) are daily partitions that live in SQL alone."""

from django.db import models


class EngineHour(models.Model):
    """How one histogram of one replica grew in a closed hour. name: its code (monitoring.engines.tables.NAMES).

    bounds: upper bounds in seconds, ascending, and their MD5, as an engine may get others within the hour. counts: how many fell
    into each and, last, above all of them.
    """

    subject_id = models.IntegerField()
    name = models.SmallIntegerField()
    hour_at = models.DateTimeField()
    bounds = models.JSONField()
    bounds_digest = models.CharField(max_length=32)
    counts = models.JSONField()
    sum_seconds = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject_id", "name", "hour_at", "bounds_digest"], name="enginehour_unique")
        ]

    def __str__(self) -> str:
        return f"{self.subject_id}/{self.name} {self.hour_at:%Y-%m-%d %H}"
