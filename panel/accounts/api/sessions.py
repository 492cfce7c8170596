"""One's own sessions over the API."""

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from panel.accounts.api.caller import person_of, token_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.api.users import EndedSerializer
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.models import LoginSession
from panel.accounts.selectors.users import session_list
from panel.accounts.services.sessions import session_end, sessions_end_all


class SessionSerializer(serializers.ModelSerializer[LoginSession]):
    """A log-in as its owner sees it; its key is a secret and stays inside."""

    is_current = serializers.SerializerMethodField()

    class Meta:
        model = LoginSession
        fields = ["id", "created_at", "last_seen_at", "address", "user_agent", "is_current"]
        read_only_fields = fields

    def get_is_current(self, row: LoginSession) -> bool:
        """Say whether this request came through it."""
        request: Request = self.context["request"]
        return token_of(request) is None and row.session_key == request.session.session_key


@extend_schema_view(
    list=extend_schema(summary="List one's own sessions"),
    destroy=extend_schema(summary="End a session", description="Sockets opened by it close within five seconds."),
)
class SessionViewSet(mixins.ListModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[LoginSession]):
    """Browsers in which one is logged in."""

    queryset = LoginSession.objects.none()
    serializer_class = SessionSerializer
    lookup_value_regex = r"\d+"
    ordering = ("-last_seen_at", "-id")
    capability: ClassVar[CapabilityTable] = dict.fromkeys(("list", "destroy", "end_others"), Capability.PROFILE_EDIT)

    def get_queryset(self) -> QuerySet[LoginSession]:
        """Return one's own live sessions."""
        return session_list(user_id=person_of(self.request).pk)

    def perform_destroy(self, instance: LoginSession) -> None:
        """End it."""
        session_end(actor=Actor.from_request(self.request), session_id=instance.pk)

    @extend_schema(summary="Log out everywhere else", request=None, responses={200: EndedSerializer})
    @action(detail=False, methods=["post"], url_path="end-others")
    def end_others(self, request: Request) -> Response:
        """End every session of one's own but the one that asks."""
        key = request.session.session_key if token_of(request) is None else None
        ended = sessions_end_all(actor=Actor.from_request(request), user=person_of(request), except_key=key)
        return Response({"ended": ended})
