"""One-shot commands for agents: asked once, done once, with progress and a result."""

from django.db import models

from fleet.enums import JobKind, JobState
from fleet.models.machines import Server


class Job(models.Model):
    """One thing that somebody asked of one server's agent.

    arguments: what the agent gets, small. context: what only the panel needs to make sense of the result. run_id: of the
    agent's process that claimed it. progress: {percent, step}. result: in the shape of its kind, see
    `fleet.services.job_kinds`. reason: a code of `frontend.words.JOB_REASONS`, empty when it succeeded.
    expires_at: until then it is begun, or, once claimed, its outcome is waited for.
    """

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=16, choices=JobKind.choices)
    state = models.CharField(max_length=16, choices=JobState.choices, default=JobState.PENDING)
    arguments = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    time_limit_seconds = models.PositiveIntegerField()
    run_id = models.UUIDField(null=True)
    progress = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    reason = models.CharField(max_length=32, blank=True, default="")
    detail = models.CharField(max_length=500, blank=True, default="")
    actor_kind = models.CharField(max_length=16)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(state__in=JobState.values), name="job_state_known"),
            models.CheckConstraint(condition=models.Q(kind__in=JobKind.values), name="job_kind_known"),
            models.UniqueConstraint(
                fields=["server", "kind"], condition=models.Q(ended_at=None), name="job_one_open_of_a_kind"
            ),
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=models.Q(ended_at=None), name="job_open"),
            models.Index(fields=["server", "kind", "-created_at"], name="job_by_server"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk}"
