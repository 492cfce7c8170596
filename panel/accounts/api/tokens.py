"""API tokens over the API, and the log-in that gives one."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from panel.accounts.api.bodies import body_of
from panel.accounts.api.caller import person_of, token_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.enums import Role
from panel.accounts.models import ApiToken
from panel.accounts.selectors.tokens import token_list
from panel.accounts.services.login import token_log_in
from panel.accounts.services.tokens import token_create, token_revoke


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token as it is listed: never its secret."""

    owner = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = ApiToken
        fields = ["id", "name", "prefix", "owner", "scope", "created_at", "expires_at", "last_used_at", "revoked_at"]
        read_only_fields = fields


class TokenCreateSerializer(serializers.Serializer[Any]):
    """What a new token needs."""

    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=Role.choices, default=Role.VIEWER)
    expires_at = serializers.DateTimeField(required=False, help_text="90 days from now when left out; a year at most.")


class NewTokenSerializer(TokenSerializer):
    """A token just made, with its secret: shown in this one answer."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields


@extend_schema_view(
    list=extend_schema(summary="List API tokens", description="One's own; with `tokens.manage`, everybody's."),
    retrieve=extend_schema(summary="Show an API token"),
    destroy=extend_schema(summary="Revoke an API token", description="It stays in the list, marked as revoked."),
)
class TokenViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[ApiToken]
):
    """Tokens for automation."""

    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    lookup_value_regex = r"\d+"
    capability: ClassVar[CapabilityTable] = dict.fromkeys(
        ("list", "retrieve", "create", "destroy"), Capability.TOKENS_OWN
    )

    def get_queryset(self) -> QuerySet[ApiToken]:
        """Return what the caller may see."""
        return token_list(actor=Actor.from_request(self.request))

    @extend_schema(summary="Make an API token", request=TokenCreateSerializer, responses={201: NewTokenSerializer})
    def create(self, request: Request) -> Response:
        """Make a token for the caller. Its secret stands in this answer and nowhere else."""
        body = body_of(request, TokenCreateSerializer)
        row, secret = token_create(
            actor=Actor.from_request(request), owner=person_of(request), using=token_of(request), **body
        )
        return Response({**TokenSerializer(row).data, "token": secret}, status=status.HTTP_201_CREATED)

    def perform_destroy(self, instance: ApiToken) -> None:
        """Revoke; the row stays for the record."""
        token_revoke(actor=Actor.from_request(self.request), token_id=instance.pk)


class LogInSerializer(serializers.Serializer[Any]):
    """A name and a password."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1024, trim_whitespace=False, write_only=True)
    code = serializers.CharField(max_length=32, required=False, write_only=True, help_text="Of the second factor.")


class LogInTokenSerializer(serializers.Serializer[Any]):
    """A token that can do what its owner can, for a day."""

    token = serializers.CharField()
    expires_at = serializers.DateTimeField()
    scope = serializers.ChoiceField(choices=Role.choices)


class ObtainTokenView(APIView):
    """Exchange a name and a password for a token."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(
        summary="Log in for a token",
        request=LogInSerializer,
        responses={200: LogInTokenSerializer},
        auth=[],
        tags=["auth"],
    )
    def post(self, request: Request) -> Response:
        """Return a token. Attempts are limited per account and per address; a wrong name looks like a wrong password."""
        body = body_of(request, LogInSerializer)
        row, secret = token_log_in(actor=Actor.from_request(request), **body)
        return Response({"token": secret, "expires_at": row.expires_at, "scope": row.scope})
