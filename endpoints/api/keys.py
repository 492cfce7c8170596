"""Callers' keys and engines' secrets over the API: made, listed without their values, ended."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from endpoints.models import ApiKey, Secret
from endpoints.selectors import key_list
from endpoints.services.keys import SECRET_BYTES, key_create, key_revoke, secret_delete, secret_set
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability

_MOST = 2**31 - 1


class ApiKeySerializer(serializers.ModelSerializer[ApiKey]):
    """A caller's key, without the key."""

    class Meta:
        model = ApiKey
        fields = [
            "id", "name", "prefix", "endpoints", "requests_per_minute", "tokens_per_minute", "created_at",
            "created_by_name", "expires_at", "revoked_at", "held_until", "last_used_at",
        ]  # fmt: skip
        read_only_fields = fields


class ApiKeyCreateSerializer(serializers.Serializer[Any]):
    """A new key."""

    name = serializers.CharField(max_length=100)
    endpoints = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=500, default=list, help_text="Names; empty: all."
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True, default=None)
    requests_per_minute = serializers.IntegerField(
        min_value=1, max_value=_MOST, required=False, allow_null=True, default=None, help_text="In each gateway."
    )
    tokens_per_minute = serializers.IntegerField(
        min_value=1, max_value=_MOST, required=False, allow_null=True, default=None
    )


class ApiKeyIssuedSerializer(ApiKeySerializer):
    """A key just made: the key itself is shown this once."""

    key = serializers.CharField(read_only=True)

    class Meta(ApiKeySerializer.Meta):
        fields = [*ApiKeySerializer.Meta.fields, "key"]
        read_only_fields = fields


@extend_schema_view(list=extend_schema(summary="List keys of callers"), retrieve=extend_schema(summary="Show a key"))
class ApiKeyViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ApiKey]):
    """Keys with which callers reach endpoints."""

    queryset = ApiKey.objects.none()
    serializer_class = ApiKeySerializer
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = Capability.ENDPOINTS_MANAGE

    def get_queryset(self) -> QuerySet[ApiKey]:
        """Return every key."""
        return key_list()

    @extend_schema(summary="Make a key", request=ApiKeyCreateSerializer, responses={201: ApiKeyIssuedSerializer})
    def create(self, request: Request) -> Response:
        """Answer the key, which is kept nowhere and shown this once."""
        key, issued = key_create(actor=Actor.from_request(request), **body_of(request, ApiKeyCreateSerializer))
        return Response({**ApiKeySerializer(key).data, "key": issued.token}, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Revoke a key", responses=ApiKeySerializer)
    def destroy(self, request: Request, pk: str) -> Response:
        """Gateways refuse it within seconds; its row stays for the record."""
        key = key_revoke(key_id=int(pk), actor=Actor.from_request(request))
        return Response(ApiKeySerializer(key).data)


class SecretSerializer(serializers.ModelSerializer[Secret]):
    """A secret, without its value."""

    class Meta:
        model = Secret
        fields = ["name", "created_at", "changed_at", "created_by_name"]
        read_only_fields = fields


class SecretValueSerializer(serializers.Serializer[Any]):
    """A secret's value."""

    value = serializers.CharField(max_length=SECRET_BYTES, write_only=True, trim_whitespace=False)


@extend_schema_view(
    list=extend_schema(summary="List secrets of engines"), retrieve=extend_schema(summary="Show that a secret is kept")
)
class SecretViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Secret]):
    """Values that engines get in their environment, by name; never shown again."""

    queryset = Secret.objects.none()
    serializer_class = SecretSerializer
    lookup_field = "name"
    lookup_value_regex = "[A-Za-z0-9_-]+"
    capability: ClassVar[CapabilityTable] = Capability.ENDPOINTS_MANAGE

    def get_queryset(self) -> QuerySet[Secret]:
        """Return every secret."""
        return Secret.objects.order_by("name")

    @extend_schema(summary="Keep or replace a secret", request=SecretValueSerializer, responses=SecretSerializer)
    def update(self, request: Request, name: str) -> Response:
        """Engines that run keep what they were given; the next start gets the new value."""
        body = body_of(request, SecretValueSerializer)
        secret = secret_set(name=name, value=body["value"], actor=Actor.from_request(request))
        return Response(SecretSerializer(secret).data)

    @extend_schema(summary="Forget a secret", responses={204: None})
    def destroy(self, request: Request, name: str) -> Response:
        """Forget it."""
        secret_delete(name=name, actor=Actor.from_request(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
