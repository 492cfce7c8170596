"""People over the API: managed by admins; everybody's own settings under `users/me/`."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from panel.accounts.api.bodies import PasswordSerializer, body_of
from panel.accounts.api.caller import person_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import ROLE_CAPABILITIES, Capability
from panel.accounts.enums import Role, Theme
from panel.accounts.models import User
from panel.accounts.selectors.users import user_list
from panel.accounts.services import users
from panel.accounts.services.sessions import sessions_end_all
from panel.accounts.services.two_factor import two_factor_reset


class UserSerializer(serializers.ModelSerializer[User]):
    """A person, without anything secret."""

    class Meta:
        model = User
        fields = [
            "id",
            "username",
            "email",
            "role",
            "is_active",
            "language",
            "time_zone",
            "theme",
            "date_joined",
            "last_login",
        ]
        read_only_fields = fields


class UserWriteSerializer(serializers.Serializer[Any]):
    """What an admin may change of a person."""

    username = serializers.CharField(max_length=150)
    email = serializers.EmailField(max_length=254, allow_blank=True, required=False)
    role = serializers.ChoiceField(choices=Role.choices, required=False)
    is_active = serializers.BooleanField(required=False)


class UserCreateSerializer(serializers.Serializer[Any]):
    """A new person."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=1024, write_only=True, trim_whitespace=False)
    email = serializers.EmailField(max_length=254, allow_blank=True, required=False)
    role = serializers.ChoiceField(choices=Role.choices, default=Role.VIEWER)


class PasswordChangeSerializer(PasswordSerializer):
    """A new password, with the present one as proof."""

    current_password = serializers.CharField(max_length=1024, write_only=True, trim_whitespace=False)


class MeSerializer(UserSerializer):
    """Oneself, with what one may do through this very session or token."""

    capabilities = serializers.SerializerMethodField()

    class Meta(UserSerializer.Meta):
        fields = [*UserSerializer.Meta.fields, "has_shortcuts", "capabilities"]
        read_only_fields = fields

    def get_capabilities(self, user: User) -> list[str]:  # noqa: ARG002 (the framework's signature)
        """Return the capabilities of the request's actor, sorted."""
        role = Role(Actor.from_request(self.context["request"]).role)
        return sorted(ROLE_CAPABILITIES[role])


class PreferencesSerializer(serializers.Serializer[Any]):
    """How pages look to oneself; empty means automatic."""

    language = serializers.CharField(max_length=16, allow_blank=True, required=False)
    time_zone = serializers.CharField(max_length=64, allow_blank=True, required=False)
    theme = serializers.ChoiceField(choices=Theme.choices, required=False)
    has_shortcuts = serializers.BooleanField(required=False)


class EndedSerializer(serializers.Serializer[Any]):
    """How many sessions ended."""

    ended = serializers.IntegerField()


@extend_schema_view(
    list=extend_schema(summary="List people"),
    retrieve=extend_schema(summary="Show a person"),
    destroy=extend_schema(
        summary="Remove a person", description="Their tokens and sessions end. The last admin stays."
    ),
)
class UserViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, mixins.DestroyModelMixin, viewsets.GenericViewSet[User]
):
    """People who log in."""

    queryset = User.objects.none()
    serializer_class = UserSerializer
    lookup_value_regex = r"\d+"
    ordering = ("username", "id")
    capability: ClassVar[CapabilityTable] = {
        **dict.fromkeys(
            ("list", "retrieve", "create", "partial_update", "destroy", "password", "end_sessions", "reset_two_factor"),
            Capability.USERS_MANAGE,
        ),
        "me": Capability.PROFILE_EDIT,
        "change_preferences": Capability.PROFILE_EDIT,
        "change_password": Capability.PROFILE_EDIT,
    }

    def get_queryset(self) -> QuerySet[User]:
        """Return everybody."""
        return user_list()

    @extend_schema(summary="Make a person", request=UserCreateSerializer, responses={201: UserSerializer})
    def create(self, request: Request) -> Response:
        """Make a person who can log in at once."""
        body = body_of(request, UserCreateSerializer)
        user = users.user_create(actor=Actor.from_request(request), **body)
        return Response(UserSerializer(user).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Change a person", request=UserWriteSerializer, responses={200: UserSerializer})
    def partial_update(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the router names it)
        """Change what is given; deactivating ends their sessions and tokens."""
        body = body_of(request, UserWriteSerializer, partial=True)
        user = users.user_update(actor=Actor.from_request(request), user_id=self.get_object().pk, **body)
        return Response(UserSerializer(user).data)

    def perform_destroy(self, instance: User) -> None:
        """Remove the person, unless they are the last admin."""
        users.user_delete(actor=Actor.from_request(self.request), user_id=instance.pk)

    @extend_schema(summary="Give a person a new password", request=PasswordSerializer, responses={204: None})
    @action(detail=True, methods=["post"])
    def password(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the router names it)
        """Set the password; all sessions of that person end."""
        body = body_of(request, PasswordSerializer)
        users.password_set(actor=Actor.from_request(request), user_id=self.get_object().pk, **body)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Switch a person's second factor off", request=None, responses={204: None})
    @action(detail=True, methods=["post"], url_path="reset-two-factor")
    def reset_two_factor(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the router names it)
        """Let somebody in again who lost phone and recovery codes."""
        two_factor_reset(actor=Actor.from_request(request), user=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(summary="Log a person out everywhere", request=None, responses={200: EndedSerializer})
    @action(detail=True, methods=["post"], url_path="end-sessions")
    def end_sessions(self, request: Request, pk: str) -> Response:  # noqa: ARG002 (the router names it)
        """End all their sessions; open sockets close within five seconds."""
        ended = sessions_end_all(actor=Actor.from_request(request), user=self.get_object())
        return Response({"ended": ended})

    @extend_schema(summary="Show oneself", responses={200: MeSerializer})
    @action(detail=False, methods=["get"])
    def me(self, request: Request) -> Response:
        """Return who this session or token is, and what it may do."""
        return Response(MeSerializer(person_of(request), context={"request": request}).data)

    @extend_schema(summary="Change one's own settings", request=PreferencesSerializer, responses={200: MeSerializer})
    @me.mapping.patch
    def change_preferences(self, request: Request) -> Response:
        """Set language, time zone, theme or keyboard shortcuts."""
        body = body_of(request, PreferencesSerializer)
        user = users.preferences_update(actor=Actor.from_request(request), user=person_of(request), **body)
        return Response(MeSerializer(user, context={"request": request}).data)

    @extend_schema(summary="Change one's own password", request=PasswordChangeSerializer, responses={204: None})
    @action(detail=False, methods=["post"], url_path="me/password")
    def change_password(self, request: Request) -> Response:
        """Change it; every other session of one's own ends."""
        body = body_of(request, PasswordChangeSerializer)
        users.password_change(
            actor=Actor.from_request(request),
            request=request,
            current=body["current_password"],
            new=body["password"],
        )
        return Response(status=status.HTTP_204_NO_CONTENT)
