"""`GET /api/v1/health/`: the checks of Self-health for programs."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.health import CheckStatus, health_checks, worst


class CheckSerializer(serializers.Serializer[Any]):
    """One check; the words are in the reader's language."""

    code = serializers.CharField(help_text="Stable; its last word is the unit of `number`.")
    name = serializers.CharField()
    status = serializers.ChoiceField(choices=CheckStatus.choices)
    value = serializers.CharField()
    number = serializers.FloatField(allow_null=True)
    limit = serializers.CharField(allow_blank=True)
    advice = serializers.CharField(allow_blank=True)


class HealthSerializer(serializers.Serializer[Any]):
    """All checks, and the worst of them."""

    status = serializers.ChoiceField(choices=CheckStatus.choices)
    at = serializers.DateTimeField()
    checks = CheckSerializer(many=True)


class HealthView(APIView):
    """The panel's own health."""

    capability: ClassVar[CapabilityTable] = {"get": Capability.HEALTH_VIEW}

    @extend_schema(summary="Check the panel itself", responses=HealthSerializer)
    def get(self, request: Request) -> Response:  # noqa: ARG002  # the framework's signature
        """Run every check now. The answer is 200 also when one is critical: the question was answered."""
        checks = health_checks()
        answer = {"status": worst(checks), "at": now(), "checks": checks}
        return Response(HealthSerializer(answer).data)
