"""Revisions and rollouts of an endpoint over the API."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.api.fields import GATE_HELP, endpoint_named, spec_of
from endpoints.models import Revision, Rollout
from endpoints.revisions import spec_differences
from endpoints.selectors import revision_list, rollout_list
from endpoints.services.rollouts import revision_deploy
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.errors import InvalidInput, NotFound

_ENDPOINT = OpenApiParameter("endpoint_name", str, OpenApiParameter.PATH, description="Name of the endpoint.")


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    """An immutable version of what answers."""

    class Meta:
        model = Revision
        fields = [
            "id", "number", "engine", "runtime", "gpus", "slots", "spec", "note", "state", "failure", "failure_line",
            "created_at", "created_by_name",
        ]  # fmt: skip
        read_only_fields = fields


class RevisionCreateSerializer(serializers.Serializer[Any]):
    """A new revision, rolled out at once."""

    spec = serializers.JSONField(help_text="What runs: see `engines/` for each engine's arguments.")
    gpus = serializers.IntegerField(
        min_value=0, max_value=16, required=False, allow_null=True, default=None,
        help_text="Of each replica; left out: as many as its tensor-parallel size. 0: it needs none.",
    )  # fmt: skip
    note = serializers.CharField(max_length=500, allow_blank=True, default="")
    gate = serializers.DictField(required=False, allow_null=True, default=None, help_text=GATE_HELP)


class RolloutSerializer(serializers.ModelSerializer[Rollout]):
    """The way of an endpoint to another revision."""

    from_revision = serializers.IntegerField(source="from_revision.number", default=None, read_only=True)
    to_revision = serializers.IntegerField(source="to_revision.number", read_only=True)

    class Meta:
        model = Rollout
        fields = [
            "id", "from_revision", "to_revision", "state", "reason", "detail", "gate", "golive_run_id", "started_at",
            "deadline_at", "ended_at", "actor_name",
        ]  # fmt: skip
        read_only_fields = fields


class DifferenceSerializer(serializers.Serializer[Any]):
    """One place in which two specs differ."""

    path = serializers.CharField(help_text="`arguments.max_model_len`")
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


@extend_schema(parameters=[_ENDPOINT])
@extend_schema_view(
    list=extend_schema(summary="List an endpoint's revisions"), retrieve=extend_schema(summary="Show a revision")
)
class RevisionViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Revision]):
    """Versions of what answers."""

    queryset = Revision.objects.none()
    serializer_class = RevisionSerializer
    lookup_field = "number"
    lookup_value_regex = r"\d{1,9}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve", "diff"), Capability.FLEET_VIEW),
        "create": Capability.ENDPOINTS_MANAGE,
    }

    def get_queryset(self) -> QuerySet[Revision]:
        """Return the endpoint's revisions. Raises NotFound without the endpoint."""
        return revision_list(endpoint=endpoint_named(self.kwargs["endpoint_name"]).pk)

    @extend_schema(
        summary="Deploy a new revision", request=RevisionCreateSerializer, responses={202: RolloutSerializer}
    )
    def create(self, request: Request, endpoint_name: str) -> Response:
        """Add it and roll it out; a rollout that is under way is called off."""
        body = body_of(request, RevisionCreateSerializer)
        rollout = revision_deploy(
            endpoint_id=endpoint_named(endpoint_name).pk,
            spec=spec_of(body["spec"]),
            gpus=body["gpus"],
            note=body["note"],
            gate=body["gate"],
            actor=Actor.from_request(request),
        )
        return Response(RolloutSerializer(rollout).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(
        summary="Compare two revisions",
        parameters=[OpenApiParameter("with", int, required=True, description="Number of the other one, the earlier.")],
        responses=DifferenceSerializer(many=True),
        filters=False,
    )
    @action(detail=True, methods=["get"], pagination_class=None)
    def diff(self, request: Request, endpoint_name: str, number: str) -> Response:  # noqa: ARG002 (in kwargs)
        """Return the places in which their specs differ."""
        try:
            other = int(request.query_params.get("with", ""))
        except ValueError:
            raise InvalidInput(_("`with` is the number of a revision."), field="with") from None
        found = {each.number: each.spec for each in self.get_queryset().filter(number__in=[other, int(number)])}
        if {other, int(number)} - set(found):
            raise NotFound(_("There is no such revision."))
        differences = spec_differences(found[other], found[int(number)])
        return Response(DifferenceSerializer(differences, many=True).data)


@extend_schema(parameters=[_ENDPOINT])
@extend_schema_view(
    list=extend_schema(summary="List an endpoint's rollouts"), retrieve=extend_schema(summary="Show a rollout")
)
class RolloutViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Rollout]):
    """Changes of revision."""

    queryset = Rollout.objects.none()
    serializer_class = RolloutSerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = Capability.FLEET_VIEW

    def get_queryset(self) -> QuerySet[Rollout]:
        """Return the endpoint's rollouts. Raises NotFound without the endpoint."""
        return rollout_list(endpoint=endpoint_named(self.kwargs["endpoint_name"]).pk)
