"""The engines that the panel knows, over the API: what each is good for, and its arguments with what they cost and buy."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.engines.registry import ENGINES, argument_schema
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.capabilities import Capability
from panel.core.errors import NotFound


class EngineSerializer(serializers.Serializer[Any]):
    """An engine."""

    kind = serializers.CharField()
    name = serializers.CharField()
    purpose = serializers.CharField()
    sources = serializers.ListField(child=serializers.CharField(), help_text="Where it can load a model from.")
    arguments = serializers.JSONField(help_text="A JSON Schema of `spec.arguments`.")


def _facts(kind: str) -> dict[str, Any]:
    known = ENGINES[kind]
    return {
        "kind": kind,
        "name": known.label,
        "purpose": str(known.purpose),
        "sources": list(known.sources),
        "arguments": argument_schema(kind),
    }


class EngineViewSet(viewsets.GenericViewSet[Any]):
    """Presets of engines."""

    serializer_class = EngineSerializer
    pagination_class = None
    lookup_field = "kind"
    lookup_value_regex = "[a-z0-9]+"
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    @extend_schema(summary="List the engines", responses=EngineSerializer(many=True), filters=False)
    def list(self, request: Request) -> Response:  # noqa: ARG002 (a method of the framework)
        """Return every engine with its arguments."""
        return Response([_facts(kind) for kind in ENGINES])

    @extend_schema(summary="Show an engine", responses=EngineSerializer)
    def retrieve(self, request: Request, kind: str) -> Response:  # noqa: ARG002 (a method of the framework)
        """Return one engine with its arguments."""
        if kind not in ENGINES:
            raise NotFound("There is no such engine.")
        return Response(_facts(kind))
