"""Go-live tests, the places that load for them, and every request that those told of."""

from django.db import models
from django.db.models import Q

from monitoring.golive_runs.enums import PartState, RunState
from panel.core.crypto import EncryptedTextField


class GoLiveRun(models.Model):
    """One test of one subject.

    asked: `monitoring.golive_runs.asked.Asked` as JSON. facts: what was tested (revision, replicas, cards, …), environment_hash
    their fingerprint. estimate: requests, tokens, seconds, cost before it began. outcome: of golive.enums.Outcome, empty until it
    ended. flaws, reasons in codes stand with the parts; saturation: of the steps. rollout_id: whose gate it is, if any.
    deadline_at: given up then. time_scale: under 1, durations were shortened for a trial, and nothing is proven for real.
    """

    subject_kind = models.CharField(max_length=16)
    subject_id = models.BigIntegerField()
    subject_name = models.CharField(max_length=200)
    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.PENDING)
    outcome = models.CharField(max_length=16, blank=True, default="")
    asked = models.JSONField()
    facts = models.JSONField(default=dict)
    environment_hash = models.CharField(max_length=32, blank=True, default="")
    estimate = models.JSONField(default=dict)
    saturation = models.JSONField(default=dict)
    has_changed = models.BooleanField(default=False)
    time_scale = models.FloatField(default=1.0)
    rollout_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="goliverun_state_known"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], condition=Q(ended_at=None), name="goliverun_one_open"
            ),
        ]
        indexes = [models.Index(fields=["subject_kind", "subject_id", "-created_at"], name="goliverun_subject")]

    def __str__(self) -> str:
        return f"go-live test {self.pk} of {self.subject_name}"


class GoLivePart(models.Model):
    """What one place sends (server_id 0: the panel).

    targets: of `fleet.agent.probes.target.Target` as JSON, asked in turn, without their bearer. plan: every arrival, see
    golive.report. phase, seconds, sent, loop_lag_ms, stopped: as last told. steps: of concurrency, what each came to.
    judgement: see golive.report; empty until the run ended. job_id: of the agent's job.
    """

    run = models.ForeignKey(GoLiveRun, on_delete=models.CASCADE, related_name="parts")
    server_id = models.IntegerField()
    state = models.CharField(max_length=16, choices=PartState.choices, default=PartState.PENDING)
    targets = models.JSONField()
    bearer = EncryptedTextField(blank=True, default="")
    plan = models.JSONField()
    job_id = models.BigIntegerField(null=True)
    phase = models.CharField(max_length=16, blank=True, default="")
    seconds = models.FloatField(default=0.0)
    sent = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    loop_lag_ms = models.FloatField(null=True)
    stopped = models.CharField(max_length=16, blank=True, default="")
    detail = models.CharField(max_length=300, blank=True, default="")
    steps = models.JSONField(default=list)
    judgement = models.JSONField(default=dict)
    heard_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=PartState.values), name="golivepart_state_known"),
            models.UniqueConstraint(fields=["run", "server_id"], name="golivepart_once"),
        ]

    def __str__(self) -> str:
        return f"part {self.pk} of go-live test {self.run_id}"


class GoLivePiece(models.Model):
    """Requests as a place told of them: `fleet.agent.load.order.Shot` as arrays. Kept with the run."""

    part = models.ForeignKey(GoLivePart, on_delete=models.CASCADE, related_name="pieces")
    sequence = models.PositiveIntegerField()
    shots = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["part", "sequence"], name="golivepiece_once")]

    def __str__(self) -> str:
        return f"piece {self.sequence} of part {self.part_id}"
