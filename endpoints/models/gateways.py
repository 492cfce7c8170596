"""Where callers arrive, and what went through."""

from django.db import models
from django.db.models import Q

from endpoints.enums import GatewayState
from endpoints.models.endpoints import Endpoint
from fleet.models import Server


class Gateway(models.Model):
    """That a server's agent runs the data plane.

    Spec: port, certificate_file and key_file (paths on that machine; empty: plain HTTP), public_url (what callers use; empty:
    made of the server's address and the port). Status as its agent said at reported_at.
    """

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="gateway")
    port = models.PositiveIntegerField(default=8080)
    certificate_file = models.CharField(max_length=500, blank=True, default="")
    key_file = models.CharField(max_length=500, blank=True, default="")
    public_url = models.CharField(max_length=300, blank=True, default="")
    state = models.CharField(max_length=16, choices=GatewayState.choices, default=GatewayState.PENDING)
    detail = models.CharField(max_length=500, blank=True, default="")
    data_plane = models.CharField(max_length=100, blank=True, default="")
    applied_version = models.PositiveBigIntegerField(default=0)
    reported_at = models.DateTimeField(null=True)
    run_id = models.UUIDField(null=True)
    seq = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(state__in=GatewayState.values), name="gateway_state_known")]

    def __str__(self) -> str:
        return f"gateway on {self.server_id}"


class EndpointTraffic(models.Model):
    """What went through one gateway for one endpoint in a span of 10 s: fleet.agent.orders.EndpointTraffic as JSON columns.

    queue, first_byte, total: {count, sum_ms, buckets: {k: n}}; bucket k counts [2**(k/32), 2**((k+1)/32)) ms.
    tokens: of requests that brought a key, prompts and answers together; null where none did, as nobody counts those.
    """

    gateway = models.ForeignKey(Gateway, on_delete=models.CASCADE, related_name="traffic")
    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="traffic")
    from_at = models.DateTimeField()
    requests = models.PositiveIntegerField()
    statuses = models.JSONField(default=dict)
    queue = models.JSONField(default=dict)
    first_byte = models.JSONField(default=dict)
    total = models.JSONField(default=dict)
    bytes_in = models.PositiveBigIntegerField(default=0)
    bytes_out = models.PositiveBigIntegerField(default=0)
    in_flight = models.PositiveIntegerField(null=True)
    retries = models.PositiveIntegerField(default=0)
    limited = models.PositiveIntegerField(default=0)
    probes = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["gateway", "endpoint", "from_at"], name="endpointtraffic_span_unique")
        ]
        indexes = [models.Index(fields=["endpoint", "-from_at"], name="endpointtraffic_recent")]

    def __str__(self) -> str:
        return f"{self.endpoint_id} {self.from_at}"
