"""Join tokens over the API: made, listed, taken back."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.agent_package.installer import join_command, mirror_url, panel_url
from fleet.api.filters import JoinTokenFilters
from fleet.api.serializers import JoinTokenSerializer, NewJoinTokenSerializer
from fleet.models import JoinToken
from fleet.selectors import join_token_list
from fleet.services.joining import join_token_create, join_token_revoke
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now


class JoinTokenCreateSerializer(serializers.Serializer[Any]):
    """What a new join token needs."""

    name = serializers.CharField(max_length=100, help_text="The server gets this name.")
    provider = serializers.CharField(max_length=64, allow_blank=True, default="")
    region = serializers.CharField(max_length=64, allow_blank=True, default="")
    is_simulated = serializers.BooleanField(default=False, help_text="The server gets a badge that says so.")
    mirror = serializers.CharField(
        max_length=500,
        allow_blank=True,
        default="",
        help_text="A package mirror by its configured name, or its address.",
    )


@extend_schema_view(
    list=extend_schema(summary="List join tokens"),
    retrieve=extend_schema(summary="Show a join token"),
    destroy=extend_schema(summary="Take a join token back", description="It stays in the list, marked as revoked."),
)
class JoinTokenViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[JoinToken]
):
    """One-time tokens with which machines join."""

    queryset = JoinToken.objects.none()
    serializer_class = JoinTokenSerializer
    lookup_value_regex = r"\d+"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = JoinTokenFilters
    capability: ClassVar[CapabilityTable] = dict.fromkeys(
        ("list", "retrieve", "create", "destroy"), Capability.JOIN_TOKENS_MANAGE
    )

    def get_queryset(self) -> QuerySet[JoinToken]:
        """Return every join token."""
        return join_token_list(now=now())

    @extend_schema(
        summary="Make a join token", request=JoinTokenCreateSerializer, responses={201: NewJoinTokenSerializer}
    )
    def create(self, request: Request) -> Response:
        """Make a token that one machine can use within 24 hours. It stands in this answer and nowhere else."""
        body = body_of(request, JoinTokenCreateSerializer)
        mirror = mirror_url(body.pop("mirror"))
        made = join_token_create(actor=Actor.from_request(request), **body)
        url = panel_url(request._request)  # noqa: SLF001 (DRF's own way to Django's request)
        command = join_command(url=url, token=made.token, mirror=mirror)
        answer = {**JoinTokenSerializer(made.row).data, "token": made.token, "command": command}
        return Response(answer, status=status.HTTP_201_CREATED)

    def perform_destroy(self, instance: JoinToken) -> None:
        """Take it back; the row stays for the record."""
        join_token_revoke(join_token=instance, actor=Actor.from_request(self.request))
