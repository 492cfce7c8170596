"""Servers, agents, join tokens and faults as the API shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from fleet.advice import driver_advice, server_advice
from fleet.api.leasing.serializers import PriceSerializer
from fleet.models import Agent, GpuFault, JoinToken, Lease, Server
from fleet.services.judging import FAULT_QUIET
from fleet.xids import fault_meaning
from panel.core.clock import now
from panel.core.enums import Severity


class AdviceSerializer(serializers.Serializer[Any]):
    """A state in words."""

    sentence = serializers.CharField()
    next_step = serializers.CharField(help_text="What to do; empty when nothing needs doing.")
    severity = serializers.ChoiceField(choices=Severity.choices)


class AgentSerializer(serializers.ModelSerializer[Agent]):
    """The agent of a server: never its token."""

    server_name = serializers.CharField(source="server.name", read_only=True)

    class Meta:
        model = Agent
        fields = [
            "id",
            "server",
            "server_name",
            "version",
            "capabilities",
            "joined_at",
            "revoked_at",
            "last_seen_at",
            "last_address",
            "clock_skew_seconds",
            "sample_interval_seconds",
            "report_interval_seconds",
            "spooled_batches",
            "lost_samples",
            "assignments_version",
        ]
        read_only_fields = fields


class ServerLeaseSerializer(serializers.ModelSerializer[Lease]):
    """The lease that pays for a server, in short; `/leases/{id}/` has all of it."""

    title = serializers.CharField(read_only=True, help_text="What people call it.")
    prices = PriceSerializer(source="prices_in_force", many=True, read_only=True, help_text="Parts that are in force.")

    class Meta:
        model = Lease
        fields = ["id", "name", "title", "state", "billing", "prices"]
        read_only_fields = fields


class ServerSerializer(serializers.ModelSerializer[Server]):
    """A server with its agent and counts of its whole cards."""

    agent = serializers.SerializerMethodField()
    lease = serializers.SerializerMethodField()
    facts = serializers.DictField(read_only=True, help_text="What the agent told of the host.")
    labels = serializers.DictField(child=serializers.CharField(), read_only=True)
    advice = serializers.SerializerMethodField()
    driver_advice = serializers.SerializerMethodField()
    gpus_known = serializers.IntegerField(read_only=True)
    gpus_answering = serializers.IntegerField(read_only=True)
    gpus_missing = serializers.IntegerField(read_only=True, help_text="Missing or lost.")
    gpus_unknown = serializers.IntegerField(read_only=True)

    class Meta:
        model = Server
        fields = [
            "id",
            "name",
            "state",
            "state_reason",
            "state_changed_at",
            "advice",
            "gpu_health",
            "gpus_known",
            "gpus_answering",
            "gpus_missing",
            "gpus_unknown",
            "driver_state",
            "driver_detail",
            "driver_version",
            "driver_library_version",
            "cuda_version",
            "driver_since",
            "driver_advice",
            "provider",
            "region",
            "labels",
            "is_simulated",
            "agent",
            "lease",
            "facts",
            "facts_at",
            "first_sample_at",
            "created_at",
            "retired_at",
        ]
        read_only_fields = fields

    @extend_schema_field(AgentSerializer(allow_null=True))
    def get_agent(self, server: Server) -> dict[str, Any] | None:
        """Return the agent, null for a server that is only expected."""
        agent = getattr(server, "agent", None)
        if agent is None:
            return None
        agent.server = server  # it is here already; spares a query for its name
        return dict(AgentSerializer(agent).data)

    @extend_schema_field(ServerLeaseSerializer(allow_null=True))
    def get_lease(self, server: Server) -> dict[str, Any] | None:
        """Return the open lease that pays for the server; null for a machine of one's own."""
        lease = next(iter(getattr(server, "open_leases", ())), None)
        return None if lease is None else dict(ServerLeaseSerializer(lease).data)

    @extend_schema_field(AdviceSerializer)
    def get_advice(self, server: Server) -> dict[str, str]:
        """Return the state in words."""
        return server_advice(server.state).as_text()

    @extend_schema_field(AdviceSerializer)
    def get_driver_advice(self, server: Server) -> dict[str, str]:
        """Return the driver's state in words."""
        return driver_advice(server.driver_state).as_text()


class JoinTokenSerializer(serializers.ModelSerializer[JoinToken]):
    """A join token as it is listed: never its secret."""

    class Meta:
        model = JoinToken
        fields = [
            "id",
            "name",
            "prefix",
            "provider",
            "region",
            "is_simulated",
            "server",
            "created_at",
            "created_by_name",
            "expires_at",
            "used_at",
            "used_from",
            "revoked_at",
        ]
        read_only_fields = fields


class NewJoinTokenSerializer(JoinTokenSerializer):
    """A join token just made, with its secret: shown in this one answer."""

    token = serializers.CharField(read_only=True)
    command = serializers.CharField(read_only=True, help_text="One line for a shell on the machine.")

    class Meta(JoinTokenSerializer.Meta):
        fields = [*JoinTokenSerializer.Meta.fields, "token", "command"]
        read_only_fields = fields


class FaultSerializer(serializers.ModelSerializer[GpuFault]):
    """A fault: one burst of the same code on the same card."""

    server_name = serializers.CharField(source="server.name", read_only=True)
    gpu_uuid = serializers.CharField(source="gpu.uuid", read_only=True, default=None)
    gpu_index = serializers.IntegerField(source="gpu.index", read_only=True, default=None)
    is_open = serializers.SerializerMethodField()
    advice = serializers.SerializerMethodField()

    class Meta:
        model = GpuFault
        fields = [
            "id",
            "server",
            "server_name",
            "gpu",
            "gpu_uuid",
            "gpu_index",
            "kind",
            "code",
            "severity",
            "advice",
            "message",
            "pci_bus_id",
            "source",
            "first_at",
            "last_at",
            "count",
            "is_open",
        ]
        read_only_fields = fields

    def get_is_open(self, fault: GpuFault) -> bool:
        """Say whether it repeated within the last ten minutes."""
        return fault.last_at > now() - FAULT_QUIET

    @extend_schema_field(AdviceSerializer)
    def get_advice(self, fault: GpuFault) -> dict[str, str]:
        """Return what the code means and what to do."""
        meaning = fault_meaning(fault.kind, fault.code)
        return {
            "sentence": str(meaning.sentence),
            "next_step": str(meaning.step.value),
            "severity": str(fault.severity),
        }
