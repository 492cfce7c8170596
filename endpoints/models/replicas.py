"""Serving copies of an endpoint, the cards they hold, and what their engines said."""

from django.db import models
from django.db.models import Q

from endpoints.enums import ReplicaHealth, ReplicaState, Wanted
from endpoints.models.endpoints import Endpoint, Revision
from fleet.models import Gpu, Server


class Replica(models.Model):
    """One serving copy on one server.

    Spec: wanted, generation (another one: started anew), port. Status, as its agent said at observed_at: state, health, reason
    (a code), detail, restarts, exit_code, handle, percent, running, waiting, kv_cache_percent, answered_ms.
    metrics: what its engine's page of metrics has: {family, missing, broken, problem}, see fleet.agent.orders.ReplicaStatus.
    steps: {step: [began, ended]} in ISO 8601, see endpoints.services.steps. is_routed: gateways send requests to it.
    is_gated: a test has to pass before they may.
    """

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="replicas")
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="replicas")
    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="replicas")
    wanted = models.CharField(max_length=8, choices=Wanted.choices, default=Wanted.RUN)
    generation = models.PositiveIntegerField(default=1)
    port = models.PositiveIntegerField()
    runtime = models.CharField(max_length=16)
    state = models.CharField(max_length=16, choices=ReplicaState.choices, default=ReplicaState.PENDING)
    state_changed_at = models.DateTimeField()
    health = models.CharField(max_length=16, choices=ReplicaHealth.choices, blank=True, default=ReplicaHealth.UNKNOWN)
    reason = models.CharField(max_length=32, blank=True, default="")
    detail = models.CharField(max_length=500, blank=True, default="")
    observed_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    is_routed = models.BooleanField(default=False)
    is_gated = models.BooleanField(default=False)
    restarts = models.PositiveIntegerField(default=0)
    exit_code = models.IntegerField(null=True)
    handle = models.CharField(max_length=100, blank=True, default="")
    percent = models.PositiveSmallIntegerField(null=True)
    running = models.FloatField(null=True)
    waiting = models.FloatField(null=True)
    kv_cache_percent = models.FloatField(null=True)
    answered_ms = models.FloatField(null=True)
    metrics = models.JSONField(default=dict)
    steps = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    drain_began_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=ReplicaState.values), name="replica_state_known"),
            models.CheckConstraint(condition=Q(wanted__in=Wanted.values), name="replica_wanted_known"),
            models.CheckConstraint(condition=Q(health__in=ReplicaHealth.values), name="replica_health_known"),
            models.UniqueConstraint(fields=["server", "port"], condition=Q(ended_at=None), name="replica_port_unique"),
        ]
        indexes = [models.Index(fields=["endpoint"], condition=Q(ended_at=None), name="replica_open")]

    def __str__(self) -> str:
        return f"replica {self.pk}"


class ReplicaGpu(models.Model):
    """That a replica holds a card. The row goes when the replica has ended, and no sooner: no card is given twice."""

    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="gpu_holds")
    gpu = models.OneToOneField(Gpu, on_delete=models.CASCADE, related_name="replica_hold")

    def __str__(self) -> str:
        return f"{self.gpu_id} of replica {self.replica_id}"


class ReplicaLog(models.Model):
    """A piece of what one generation of a replica said: whole lines. offset, skipped_bytes: see fleet.agent.orders.LogChunk."""

    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="logs")
    generation = models.PositiveIntegerField()
    offset = models.PositiveBigIntegerField()
    text = models.TextField()
    skipped_bytes = models.PositiveBigIntegerField(default=0)
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["replica", "generation", "offset"], name="replicalog_offset_unique")
        ]

    def __str__(self) -> str:
        return f"{self.replica_id}/{self.generation} @{self.offset}"
