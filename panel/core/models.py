"""Events: what happened to the things the panel watches, as one stream."""

from django.db import models

from panel.core.enums import Severity


class Event(models.Model):
    """Something that happened by itself or as a consequence (a state change, an XID, an agent that joined).

    What a person or token did stands in the audit trail; the Events page merges both by time.
    kind: dotted, e.g. `server.state_changed`, `gpu.xid`. data: the facts, for the sentence and for programs.
    """

    at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=64)
    severity = models.CharField(max_length=16, choices=Severity.choices, default=Severity.INFO)
    subject_kind = models.CharField(max_length=32)
    subject_id = models.BigIntegerField(null=True)
    subject_name = models.CharField(max_length=200, blank=True)
    server_id = models.BigIntegerField(null=True)
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(severity__in=Severity.values), name="event_severity_known")
        ]
        indexes = [
            models.Index(fields=["subject_kind", "subject_id", "-at"], name="event_by_subject"),
            models.Index(fields=["server_id", "-at"], name="event_by_server"),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.kind} {self.subject_name}"


class Installation(models.Model):
    """The one row that names this installation; machines ordered here carry the name at their provider.

    bound_to: the database that the name was drawn or kept in (see panel.core.installation); in a copy it is another one.
    """

    name = models.CharField(max_length=16)
    bound_to = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="installation_one_row")]

    def __str__(self) -> str:
        return self.name
