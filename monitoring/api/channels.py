"""Channels over the API: made, changed, tested with the whole conversation, given new secrets, switched off, removed."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from monitoring.delivery import channels as services
from monitoring.delivery.enums import ChannelKind
from monitoring.delivery.models import Channel
from monitoring.delivery.notices import channel_test
from monitoring.delivery.selectors import channel_list
from monitoring.delivery.sending import secrets_of_channel
from monitoring.notifiers.phrases import translated
from panel.accounts.api.bodies import body_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.enums import Severity


class ChannelSerializer(serializers.ModelSerializer[Channel]):
    """One way to reach people or programs; its secrets are never shown again."""

    settings = serializers.DictField(read_only=True, help_text="What may be shown, by kind.")
    topics = serializers.ListField(child=serializers.CharField(), read_only=True, help_text="Empty: all.")
    secret_names = serializers.SerializerMethodField()
    used_by = serializers.SerializerMethodField()
    disabled_reason = serializers.SerializerMethodField()
    failure = serializers.SerializerMethodField()
    queued_count = serializers.IntegerField(read_only=True)
    dead_count = serializers.IntegerField(read_only=True, help_text="Undeliverable and not dismissed.")

    class Meta:
        model = Channel
        fields = [
            "id", "name", "kind", "settings", "secret_names", "language", "time_zone", "min_severity", "topics",
            "quiet_start", "quiet_end", "fallback", "is_enabled", "disabled_reason", "used_by", "queued_count", "dead_count",
            "delivered_at", "failed_at", "failure", "created_at", "created_by_name",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_secret_names(self, channel: Channel) -> list[str]:
        """Return which secrets are kept."""
        return sorted(secrets_of_channel(channel))

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_used_by(self, channel: Channel) -> list[str]:
        """Return what would lose this receiver."""
        return services.channel_users(channel.pk)

    @extend_schema_field(serializers.CharField())
    def get_disabled_reason(self, channel: Channel) -> str:
        """Return why it was switched off, when it was not a person who did."""
        return translated(channel.disabled_reason)

    @extend_schema_field(serializers.CharField())
    def get_failure(self, channel: Channel) -> str:
        """Return what went wrong last; empty since something was delivered."""
        return translated(channel.failure)


class _SharedSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    language = serializers.CharField(max_length=16, allow_blank=True, required=False)
    time_zone = serializers.CharField(max_length=64, allow_blank=True, required=False)
    min_severity = serializers.ChoiceField(Severity.choices, required=False)
    topics = serializers.ListField(
        child=serializers.CharField(max_length=32), max_length=20, required=False, help_text="Prefixes; empty: all."
    )
    quiet_start = serializers.TimeField(required=False, allow_null=True)
    quiet_end = serializers.TimeField(required=False, allow_null=True)
    fallback = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=2**62)
    settings = serializers.DictField(required=False, help_text="By kind: see docs/notifications.md.")


class ChannelChangeSerializer(_SharedSerializer):
    """What can be changed; `settings` as a whole."""


class ChannelSettingsSerializer(_SharedSerializer):
    """A new channel."""

    kind = serializers.ChoiceField(ChannelKind.choices)
    secrets = serializers.DictField(
        child=serializers.CharField(max_length=4_000, allow_blank=True, trim_whitespace=False), required=False,
        write_only=True, help_text="By kind: `password`; `url`, `secret`, `signing_secret`. Never shown again.",
    )  # fmt: skip


class ChannelSecretsSerializer(serializers.Serializer[Any]):
    """New secrets in the place of those that are named."""

    secrets = serializers.DictField(
        child=serializers.CharField(max_length=4_000, allow_blank=True, trim_whitespace=False), write_only=True,
        help_text="A webhook's `signing_secret` that is empty is made anew; the one before signs as well for 24 hours.",
    )  # fmt: skip


class MadeSecretsSerializer(serializers.Serializer[Any]):
    """Secrets that were made, shown this once."""

    made_secrets = serializers.DictField(child=serializers.CharField())


class ChannelMadeSerializer(ChannelSerializer):
    """A new channel with what was made for it."""

    made_secrets = serializers.DictField(child=serializers.CharField(), read_only=True, help_text="Shown this once.")

    class Meta(ChannelSerializer.Meta):
        fields = [*ChannelSerializer.Meta.fields, "made_secrets"]
        read_only_fields = fields


class ChannelTestSerializer(serializers.Serializer[Any]):
    """Whom to send the test."""

    address = serializers.CharField(
        max_length=254, required=False, allow_blank=True, help_text="Of a mail channel; its first when left out."
    )


class ChannelTestedSerializer(serializers.Serializer[Any]):
    """What came of a test, with all that was said; secrets are cut."""

    notification = serializers.IntegerField()
    outcome = serializers.ChoiceField(["delivered", "retry", "refused", "gone"])
    sentence = serializers.CharField()
    status_code = serializers.IntegerField(allow_null=True)
    error_code = serializers.CharField()
    latency_ms = serializers.FloatField()
    conversation = serializers.CharField()


def _columns(body: dict[str, Any]) -> dict[str, Any]:
    given = dict(body)
    if "fallback" in given:
        given["fallback_id"] = given.pop("fallback")
    return given


@extend_schema_view(list=extend_schema(summary="List channels"), retrieve=extend_schema(summary="Show a channel"))
class ChannelViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Channel]):
    """Where notifications go."""

    queryset = Channel.objects.none()
    serializer_class = ChannelSerializer
    ordering = ("name", "id")
    lookup_value_regex = r"\d{1,18}"
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(
            ("create", "partial_update", "destroy", "test", "secrets", "enable", "disable"), Capability.CHANNELS_MANAGE
        ),
    }

    def get_queryset(self) -> QuerySet[Channel]:
        """Return every channel."""
        return channel_list()

    def _answer(self, channel_id: int) -> Response:
        return Response(ChannelSerializer(channel_list().get(pk=channel_id)).data)

    @extend_schema(summary="Make a channel", request=ChannelSettingsSerializer, responses={201: ChannelMadeSerializer})
    def create(self, request: Request) -> Response:
        """Make one; a signing secret that is left out is made, and shown in this answer alone."""
        body = _columns(body_of(request, ChannelSettingsSerializer))
        settings, secrets = body.pop("settings", {}), body.pop("secrets", {})
        made, shown = services.channel_create(
            actor=Actor.from_request(request), settings=settings, secrets=secrets, **body
        )
        answer = {**ChannelSerializer(channel_list().get(pk=made.pk)).data, "made_secrets": shown}
        return Response(answer, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Change a channel", request=ChannelChangeSerializer, responses=ChannelSerializer)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Its secrets stay."""
        body = _columns(body_of(request, ChannelChangeSerializer, partial=True))
        services.channel_update(channel_id=int(pk), actor=Actor.from_request(request), **body)
        return self._answer(int(pk))

    @extend_schema(summary="Remove a channel", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """What is queued for it is not sent; what it was told stays as a record."""
        services.channel_delete(channel_id=int(pk), actor=Actor.from_request(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Test a channel", request=ChannelTestSerializer, responses=ChannelTestedSerializer)
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: str) -> Response:
        """Send one message now, the way that all go; answers within 20 s with the whole conversation."""
        body = body_of(request, ChannelTestSerializer)
        row, sent = channel_test(channel_id=int(pk), actor=Actor.from_request(request), address=body.get("address", ""))
        verdict = sent.verdict
        return Response(
            {
                "notification": row.pk,
                "outcome": verdict.outcome,
                "sentence": translated(verdict.sentence),
                "status_code": verdict.status_code,
                "error_code": verdict.error_code,
                "latency_ms": round(sent.latency_ms, 1),
                "conversation": sent.conversation,
            }
        )

    @extend_schema(
        summary="Replace secrets of a channel", request=ChannelSecretsSerializer, responses=MadeSecretsSerializer
    )
    @action(detail=True, methods=["put"])
    def secrets(self, request: Request, pk: str) -> Response:
        """Those that are named; the others stay."""
        body = body_of(request, ChannelSecretsSerializer)
        made = services.channel_secrets_replace(channel_id=int(pk), actor=Actor.from_request(request), **body)
        return Response({"made_secrets": made})

    @extend_schema(summary="Switch a channel on", request=None, responses=ChannelSerializer)
    @action(detail=True, methods=["post"])
    def enable(self, request: Request, pk: str) -> Response:
        """It is told what happens from now on."""
        services.channel_enable(channel_id=int(pk), actor=Actor.from_request(request))
        return self._answer(int(pk))

    @extend_schema(summary="Switch a channel off", request=None, responses=ChannelSerializer)
    @action(detail=True, methods=["post"])
    def disable(self, request: Request, pk: str) -> Response:
        """What is queued for it is not sent."""
        services.channel_disable(channel_id=int(pk), actor=Actor.from_request(request))
        return self._answer(int(pk))
