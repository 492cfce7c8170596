"""What clients call, the immutable versions of what answers, and the way from one version to the next."""

from django.db import models
from django.db.models import Q

from endpoints.enums import DesiredSource, Phase, RevisionState, RolloutState
from panel.core.crypto import EncryptedTextField


class Endpoint(models.Model):
    """A stable address behind which replicas answer.

    Spec: desired_replicas (0: scaled to zero), placement (see endpoints.services.placing.Placement), limits and timeouts as in
    `fleet.agent.orders.Route`, lost_after_seconds (how long the server of a replica may be silent before the replica is placed
    elsewhere), rollout_deadline_seconds (how long a new revision's replicas may take to be ready).
    active_revision serves; target_revision is rolled out (the same one when nothing is under way). upstream_key: the bearer
    that gateways show to replicas. routing_version: of RoutingClock at the last change that gateways must hear of.
    reconcile_at: when somebody must look at it again; None: nothing is open. phase: as last derived.
    """

    name = models.CharField(max_length=63)
    description = models.CharField(max_length=500, blank=True, default="")
    project = models.CharField(max_length=64, blank=True, default="")
    desired_replicas = models.PositiveSmallIntegerField(default=1)
    desired_source = models.CharField(max_length=16, choices=DesiredSource.choices, default=DesiredSource.PERSON)
    placement = models.JSONField(default=dict)
    hosts = models.JSONField(default=list)
    requires_key = models.BooleanField(default=True)
    in_flight_limit = models.PositiveIntegerField(default=256)
    in_flight_per_replica = models.PositiveIntegerField(null=True)
    first_byte_seconds = models.FloatField(default=120.0)
    idle_seconds = models.FloatField(default=120.0)
    lost_after_seconds = models.PositiveIntegerField(default=180)
    rollout_deadline_seconds = models.PositiveIntegerField(default=1_800)
    active_revision = models.ForeignKey("Revision", on_delete=models.PROTECT, null=True, related_name="+")
    target_revision = models.ForeignKey("Revision", on_delete=models.PROTECT, null=True, related_name="+")
    upstream_key = EncryptedTextField()
    phase = models.CharField(max_length=16, choices=Phase.choices, default=Phase.SCALING)
    phase_reason = models.CharField(max_length=32, blank=True, default="")
    phase_detail = models.CharField(max_length=500, blank=True, default="")
    phase_changed_at = models.DateTimeField()
    routing_version = models.PositiveBigIntegerField(default=0)
    reconcile_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    deleting_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=Q(deleted_at=None), name="endpoint_name_unique"),
            models.CheckConstraint(condition=Q(phase__in=Phase.values), name="endpoint_phase_known"),
            models.CheckConstraint(condition=Q(desired_source__in=DesiredSource.values), name="endpoint_source_known"),
        ]
        indexes = [
            models.Index(fields=["reconcile_at"], condition=~Q(reconcile_at=None), name="endpoint_open"),
            models.Index(fields=["routing_version"], name="endpoint_routing"),
        ]

    def __str__(self) -> str:
        return self.name


class Revision(models.Model):
    """An immutable version of what answers: spec is an `endpoints.engines.base.EngineSpec` as JSON.

    engine, runtime, gpus (cards of each replica), slots (requests that one works on at once; None: not known) and health_path
    follow from the spec and stand here for lists and gateways.
    failure, failure_line: why its last rollout was given up, and the line of the engine's log that says so.
    """

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    engine = models.CharField(max_length=32)
    runtime = models.CharField(max_length=16)
    gpus = models.PositiveSmallIntegerField(default=1)
    slots = models.PositiveIntegerField(null=True)
    health_path = models.CharField(max_length=200, blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")
    state = models.CharField(max_length=16, choices=RevisionState.choices, default=RevisionState.NEW)
    failure = models.CharField(max_length=32, blank=True, default="")
    failure_line = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "number"], name="revision_number_unique"),
            models.CheckConstraint(condition=Q(state__in=RevisionState.values), name="revision_state_known"),
        ]

    def __str__(self) -> str:
        return f"#{self.number}"


class Rollout(models.Model):
    """The way of an endpoint to another revision; the first has no revision to come from.

    deadline_at: until then at least one replica of the new revision is ready. failures: starts of its replicas that failed.
    gate: what a go-live test on its replicas has to prove before any request goes to them (`monitoring.golive_runs.asked.Asked`),
    None for no gate; golive_run_id: of that test.
    """

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="rollouts")
    from_revision = models.ForeignKey(Revision, on_delete=models.CASCADE, null=True, related_name="+")
    to_revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="rollouts")
    state = models.CharField(max_length=16, choices=RolloutState.choices, default=RolloutState.RUNNING)
    reason = models.CharField(max_length=32, blank=True, default="")
    detail = models.CharField(max_length=500, blank=True, default="")
    failures = models.PositiveSmallIntegerField(default=0)
    gate = models.JSONField(null=True)
    golive_run_id = models.BigIntegerField(null=True)
    started_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    actor_name = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint"], condition=Q(ended_at=None), name="rollout_one_open"),
            models.CheckConstraint(condition=Q(state__in=RolloutState.values), name="rollout_state_known"),
        ]

    def __str__(self) -> str:
        return f"rollout {self.pk}"


class RoutingClock(models.Model):
    """One row that counts changes of what gateways serve; taken under its lock, so that no version is seen before a lower one."""

    version = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.version)
