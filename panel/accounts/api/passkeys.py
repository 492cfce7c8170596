"""One's own passkeys over the API; the browser's part is `navigator.credentials`."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from panel.accounts.api.bodies import PasswordSerializer, body_of, password_proved
from panel.accounts.api.caller import person_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.models import Passkey
from panel.accounts.selectors.users import passkey_list
from panel.accounts.services import passkeys


class PasskeySerializer(serializers.ModelSerializer[Passkey]):
    """A passkey as its owner sees it; its key stays inside."""

    class Meta:
        model = Passkey
        fields = ["id", "name", "rp_id", "created_at", "last_used_at"]
        read_only_fields = fields


class PasskeyOptionsSerializer(serializers.Serializer[Any]):
    """What `navigator.credentials.create()` needs, in WebAuthn's JSON form; good for one answer within five minutes."""

    options = serializers.DictField()


class PasskeyAnswerSerializer(serializers.Serializer[Any]):
    """What the browser answered, and what the passkey shall be called."""

    name = serializers.CharField(max_length=passkeys.NAME_LENGTH)
    credential = serializers.DictField(help_text="The PublicKeyCredential in WebAuthn's JSON form (`toJSON()`).")


class PasskeyNameSerializer(serializers.Serializer[Any]):
    """What the passkey shall be called."""

    name = serializers.CharField(max_length=passkeys.NAME_LENGTH)


@extend_schema_view(list=extend_schema(summary="List one's own passkeys"))
class PasskeyViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Passkey]):
    """Passkeys and security keys that count as one's second factor; adding and removing takes the password."""

    queryset = Passkey.objects.none()
    serializer_class = PasskeySerializer
    lookup_value_regex = r"\d+"
    ordering = ("id",)
    capability: ClassVar[CapabilityTable] = Capability.PROFILE_EDIT

    def get_queryset(self) -> QuerySet[Passkey]:
        """Return one's own."""
        return passkey_list(user_id=person_of(self.request).pk)

    @extend_schema(
        summary="Begin to add a passkey", request=PasswordSerializer, responses={200: PasskeyOptionsSerializer}
    )
    @action(detail=False, methods=["post"])
    def start(self, request: Request) -> Response:
        """Answer what the browser needs to make one for the host of this address."""
        password_proved(request)
        user, party = person_of(request), passkeys.relying_party(request)
        options = passkeys.passkey_start(actor=Actor.from_request(request), user=user, party=party)
        return Response({"options": options})

    @extend_schema(summary="Add a passkey", request=PasskeyAnswerSerializer, responses={201: PasskeySerializer})
    def create(self, request: Request) -> Response:
        """Keep what the browser's authenticator made."""
        body = body_of(request, PasskeyAnswerSerializer)
        passkey = passkeys.passkey_register(
            actor=Actor.from_request(request),
            user=person_of(request),
            party=passkeys.relying_party(request),
            **body,
        )
        return Response(self.get_serializer(passkey).data, status=status.HTTP_201_CREATED)

    @extend_schema(summary="Rename a passkey", request=PasskeyNameSerializer, responses={200: PasskeySerializer})
    def partial_update(self, request: Request, pk: str) -> Response:
        """Call it something else."""
        body = body_of(request, PasskeyNameSerializer)
        passkey = passkeys.passkey_rename(
            actor=Actor.from_request(request), user=person_of(request), passkey_id=int(pk), **body
        )
        return Response(self.get_serializer(passkey).data)

    @extend_schema(summary="Remove a passkey", request=PasswordSerializer, responses={204: None})
    @action(detail=True, methods=["post"])
    def remove(self, request: Request, pk: str) -> Response:
        """Forget it; it opens nothing any more."""
        password_proved(request)
        passkeys.passkey_remove(actor=Actor.from_request(request), user=person_of(request), passkey_id=int(pk))
        return Response(status=status.HTTP_204_NO_CONTENT)
