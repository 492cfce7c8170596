"""Notifications over the API: what was told to whom, what came of each attempt; sent again, dismissed."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django_filters import rest_framework as filters
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.api.filters import SelectorFilters, any_of, number, text
from monitoring.delivery.enums import NoticeKind, NoticeStatus
from monitoring.delivery.models import Notification, NotificationAttempt
from monitoring.delivery.notices import notification_dismiss, notification_resend
from monitoring.delivery.selectors import notification_list
from monitoring.notifiers.phrases import translated
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.enums import Severity


class NotificationSerializer(serializers.ModelSerializer[Notification]):
    """One thing told, or to be told, to one recipient of a channel."""

    facts = serializers.DictField(read_only=True)
    reason = serializers.SerializerMethodField()

    class Meta:
        model = Notification
        fields = [
            "id", "topic", "seq", "kind", "severity", "subject_kind", "subject_id", "host_id", "channel", "channel_name",
            "recipient", "status", "held_for", "not_before", "retry_at", "attempt_count", "is_uncertain", "title", "reason",
            "message_id", "leader", "escalated_from", "facts", "created_at", "delivered_at", "dead_at", "dismissed_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_reason(self, row: Notification) -> str:
        """Return why it waits, was not sent, or could not be delivered."""
        return translated(row.reason)


class NotificationAttemptSerializer(serializers.ModelSerializer[NotificationAttempt]):
    """One attempt to send it, with all that was said; secrets are cut."""

    sentence = serializers.SerializerMethodField()

    class Meta:
        model = NotificationAttempt
        fields = [
            "id", "started_at", "outcome", "latency_ms", "status_code", "error_code", "sentence", "conversation",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.CharField())
    def get_sentence(self, attempt: NotificationAttempt) -> str:
        """Return what it means."""
        return translated(attempt.sentence)


class NotificationFilters(SelectorFilters):
    """Filters of notifications."""

    status = any_of(NoticeStatus.choices, "In this state.")
    kind = any_of(NoticeKind.choices, "Of this kind.")
    severity = any_of(Severity.choices, "Of this severity.")
    channel = number("Of this channel.")
    topic = text("Exactly this topic: `episode:4711`.")
    recipient = filters.CharFilter(max_length=254, help_text="Exactly this mail address.")
    is_dismissed = filters.BooleanFilter(help_text="Undeliverable ones that somebody dismissed, or not.")
    select: ClassVar[Any] = staticmethod(notification_list)


@extend_schema_view(
    list=extend_schema(summary="List notifications"), retrieve=extend_schema(summary="Show a notification")
)
class NotificationViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Notification]):
    """What was told to whom."""

    queryset = Notification.objects.none()
    serializer_class = NotificationSerializer
    lookup_value_regex = r"\d{1,18}"
    filter_backends = (DjangoFilterBackend,)
    filterset_class = NotificationFilters
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(("list", "retrieve"), Capability.FLEET_VIEW),
        **dict.fromkeys(("attempts", "resend", "dismiss"), Capability.NOTIFICATIONS_MANAGE),
    }

    def get_queryset(self) -> QuerySet[Notification]:
        """Return every notification."""
        return notification_list().order_by()

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter lists alone."""
        return queryset if self.detail else super().filter_queryset(queryset).order_by()

    @extend_schema(summary="Read the attempts of a notification", responses=NotificationAttemptSerializer(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def attempts(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (in kwargs)
        """Return every attempt to send the message that it travels in, the newest first."""
        row = self.get_object()
        found = NotificationAttempt.objects.filter(notification_id=row.leader_id or row.pk).order_by(
            "-started_at", "-pk"
        )
        return Response(NotificationAttemptSerializer(found[:200], many=True).data)

    @extend_schema(summary="Send a notification again", request=None, responses={202: NotificationSerializer})
    @action(detail=True, methods=["post"])
    def resend(self, request: Request, pk: str) -> Response:
        """Queue it again for the same recipient, under a message id of its own."""
        row = notification_resend(notification_id=int(pk), actor=Actor.from_request(request))
        return Response(NotificationSerializer(row).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(summary="Dismiss an undeliverable notification", request=None, responses=NotificationSerializer)
    @action(detail=True, methods=["post"])
    def dismiss(self, request: Request, pk: str) -> Response:
        """Take it off the banner of every page."""
        row = notification_dismiss(notification_id=int(pk), actor=Actor.from_request(request))
        return Response(NotificationSerializer(row).data)
