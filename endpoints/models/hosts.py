"""How a server serves replicas."""

from django.db import models
from django.db.models import Q

from endpoints.enums import RuntimeChoice
from fleet.models import Server


class ServingHost(models.Model):
    """What a person said of a server that runs replicas, and what its agent can run.

    address: where gateways reach its replicas; empty: where its agent was last heard from. ports: first_port to last_port, one
    for each replica. Mirrors: hf_endpoint (a Hugging Face mirror), uses_modelscope, image_prefix (of a registry mirror).
    models_dir: the only folder whose parts may be given to containers. is_cordoned: takes no new replicas;
    is_evacuating: those here are moved away. runtimes, unusable: what the agent said, `{"container": "docker 27.1"}`.
    """

    server = models.OneToOneField(Server, on_delete=models.CASCADE, related_name="serving")
    address = models.CharField(max_length=253, blank=True, default="")
    first_port = models.PositiveIntegerField(default=20_000)
    last_port = models.PositiveIntegerField(default=20_999)
    runtime = models.CharField(max_length=16, choices=RuntimeChoice.choices, default=RuntimeChoice.AUTO)
    hf_endpoint = models.CharField(max_length=200, blank=True, default="")
    uses_modelscope = models.BooleanField(default=False)
    image_prefix = models.CharField(max_length=200, blank=True, default="")
    models_dir = models.CharField(max_length=500, blank=True, default="")
    is_cordoned = models.BooleanField(default=False)
    is_evacuating = models.BooleanField(default=False)
    cordon_reason = models.CharField(max_length=200, blank=True, default="")
    runtimes = models.JSONField(default=dict)
    unusable = models.JSONField(default=dict)
    reported_at = models.DateTimeField(null=True)
    run_id = models.UUIDField(null=True)
    seq = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(runtime__in=RuntimeChoice.values), name="servinghost_runtime_known"),
            models.CheckConstraint(
                condition=Q(first_port__gte=1024, last_port__lte=65_535, first_port__lte=models.F("last_port")),
                name="servinghost_ports_valid",
            ),
        ]

    def __str__(self) -> str:
        return f"serving on {self.server_id}"
