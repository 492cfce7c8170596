"""Servers, their agents, their GPUs, and the tokens that let a machine join."""

from django.db import models
from django.db.models.functions import Lower

from fleet.enums import DriverState, GpuHealth, GpuState, ServerState
from panel.core.enums import Severity


class Server(models.Model):
    """A machine that reports. Identity is its row and its agent's token, never an IP address.

    facts: what the agent told of the host (fleet.agent.wire.HostFacts). `version` guards state changes.
    driver_library_version: of the user-space library; differs from driver_version on a version mismatch.
    """

    name = models.CharField(max_length=100)
    state = models.CharField(max_length=16, choices=ServerState.choices, default=ServerState.PENDING)
    state_reason = models.CharField(max_length=64, blank=True, default="")
    state_changed_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=0)
    gpu_health = models.CharField(max_length=16, choices=GpuHealth.choices, default=GpuHealth.UNKNOWN)
    driver_state = models.CharField(max_length=20, choices=DriverState.choices, default=DriverState.UNKNOWN)
    driver_detail = models.CharField(max_length=500, blank=True, default="")
    driver_version = models.CharField(max_length=64, blank=True, default="")
    driver_library_version = models.CharField(max_length=64, blank=True, default="")
    cuda_version = models.CharField(max_length=32, blank=True, default="")
    driver_since = models.DateTimeField(null=True)
    provider = models.CharField(max_length=64, blank=True, default="")
    region = models.CharField(max_length=64, blank=True, default="")
    labels = models.JSONField(default=dict, blank=True)
    facts = models.JSONField(default=dict)
    facts_at = models.DateTimeField(null=True)
    first_sample_at = models.DateTimeField(null=True)
    is_simulated = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("name"), condition=models.Q(retired_at=None), name="server_name_unique"),
            models.CheckConstraint(condition=models.Q(state__in=ServerState.values), name="server_state_known"),
            models.CheckConstraint(condition=models.Q(gpu_health__in=GpuHealth.values), name="server_gpu_health_known"),
            models.CheckConstraint(condition=models.Q(driver_state__in=DriverState.values), name="server_driver_known"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def memory_limit_bytes(self) -> int | None:
        """Return the memory that the machine may use, its container's limit or else its own; None before it told."""
        limit: int | None = self.facts.get("container_memory_limit_bytes") or self.facts.get("memory_total_bytes")
        return limit


class Agent(models.Model):
    """The Celery worker on a server. Written on every report, so kept narrow.

    clock_skew_seconds: the agent's clock minus the panel's. lost_samples: dropped by the agent's bounded spool.
    """

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="agent")
    token_prefix = models.CharField(max_length=16, unique=True)
    token_hash = models.CharField(max_length=64)
    version = models.CharField(max_length=32, blank=True, default="")
    capabilities = models.JSONField(default=list)
    joined_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_seen_at = models.DateTimeField(null=True)
    last_address = models.GenericIPAddressField(null=True)
    clock_skew_seconds = models.FloatField(null=True)
    sample_interval_seconds = models.FloatField(default=5.0)
    report_interval_seconds = models.FloatField(default=5.0)
    spooled_batches = models.PositiveIntegerField(default=0)
    lost_samples = models.BigIntegerField(default=0)
    assignments_version = models.PositiveBigIntegerField(default=1)

    def __str__(self) -> str:
        return f"agent {self.token_prefix}"


class AgentStream(models.Model):
    """The last batch stored of one run of an agent: `last_seq` advances in the transaction that stores the batch."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="streams")
    boot_id = models.UUIDField()
    last_seq = models.BigIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "boot_id"], name="agentstream_unique")]

    def __str__(self) -> str:
        return f"{self.boot_id}:{self.last_seq}"


class JoinToken(models.Model):
    """A one-time token (24 h) with which one machine joins. `server` is set when it was used, or before, to rejoin."""

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    token_hash = models.CharField(max_length=64)
    provider = models.CharField(max_length=64, blank=True, default="")
    region = models.CharField(max_length=64, blank=True, default="")
    is_simulated = models.BooleanField(default=False)
    server = models.ForeignKey(Server, on_delete=models.CASCADE, null=True, related_name="join_tokens")
    is_for_startup = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_from = models.GenericIPAddressField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Gpu(models.Model):
    """A card, keyed by its UUID on its server; the index is a label. A MIG instance points to its parent.

    The key is (server, uuid): an agent can claim any UUID, so it may only ever touch its own rows. The history of a UUID
    is the union over servers. `id` is the subject id of its samples.
    reported_state, reported_reason: what the agent said last, kept while the server is silent and `state` is unknown.
    facts: fleet.agent.wire.GpuFacts; health: GpuHealth of the slow tier; unsupported: {reading: reason}.
    """

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="gpus")
    uuid = models.CharField(max_length=96, db_index=True)
    index = models.PositiveSmallIntegerField(null=True)
    name = models.CharField(max_length=100, blank=True, default="")
    vendor = models.CharField(max_length=16, default="nvidia")
    parent = models.ForeignKey("self", on_delete=models.CASCADE, null=True, related_name="instances")
    state = models.CharField(max_length=16, choices=GpuState.choices, default=GpuState.UNKNOWN)
    state_reason = models.CharField(max_length=64, blank=True, default="")
    state_changed_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=0)
    reported_state = models.CharField(max_length=16, choices=GpuState.choices, default=GpuState.UNKNOWN)
    reported_reason = models.CharField(max_length=64, blank=True, default="")
    memory_total_bytes = models.BigIntegerField(null=True)
    power_limit_watts = models.FloatField(null=True)
    pci_bus_id = models.CharField(max_length=32, blank=True, default="")
    facts = models.JSONField(default=dict)
    health = models.JSONField(default=dict)
    unsupported = models.JSONField(default=dict)
    processes = models.JSONField(default=list)
    processes_visibility = models.CharField(max_length=16, blank=True, default="")
    processes_at = models.DateTimeField(null=True)
    health_at = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["server", "uuid"], name="gpu_unique_on_server"),
            models.CheckConstraint(condition=models.Q(state__in=GpuState.values), name="gpu_state_known"),
            models.CheckConstraint(condition=models.Q(reported_state__in=GpuState.values), name="gpu_reported_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.uuid}"


class GpuFault(models.Model):
    """An XID or other fault of a card, bursts counted: one row until ten minutes pass without a new one.

    source: nvml | kernel_log. gpu is null when the bus id matches no known card.
    """

    server = models.ForeignKey(Server, on_delete=models.CASCADE, related_name="faults")
    gpu = models.ForeignKey(Gpu, on_delete=models.CASCADE, null=True, related_name="faults")
    kind = models.CharField(max_length=16, default="xid")
    code = models.IntegerField(null=True)
    severity = models.CharField(max_length=16, choices=Severity.choices, default=Severity.INFO)
    pci_bus_id = models.CharField(max_length=32, blank=True, default="")
    message = models.CharField(max_length=500, blank=True, default="")
    source = models.CharField(max_length=16)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)

    class Meta:
        indexes = [models.Index(fields=["server", "-last_at"], name="gpufault_recent")]

    def __str__(self) -> str:
        return f"{self.kind} {self.code} ×{self.count}"


class FaultSighting(models.Model):
    """What was counted of one card, code and second, so that a repeat or the second source is not counted again.

    key: `<card>:<kind>:<code>:<second of the agent's clock>`. count: the most that any one source told of it.
    """

    fault = models.ForeignKey(GpuFault, on_delete=models.CASCADE, related_name="sightings")
    key = models.CharField(max_length=120)
    server = models.ForeignKey(Server, on_delete=models.CASCADE)
    at = models.DateTimeField(db_index=True)
    received_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["server", "key"], name="faultsighting_unique")]
        indexes = [models.Index(fields=["server", "received_at"], name="faultsighting_rate")]

    def __str__(self) -> str:
        return self.key
