"""One's own second factor over the API."""

from typing import Any, ClassVar

from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from panel.accounts.api.bodies import PasswordSerializer, body_of, password_proved
from panel.accounts.api.caller import person_of
from panel.accounts.api.permissions import CapabilityTable
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.accounts.selectors.users import two_factor_state
from panel.accounts.services import two_factor


class TwoFactorSerializer(serializers.Serializer[Any]):
    """Whether logging in takes a code, and how many recovery codes are left."""

    is_on = serializers.BooleanField()
    recovery_codes_left = serializers.IntegerField()


class EnrolmentSerializer(serializers.Serializer[Any]):
    """What an authenticator app needs, shown in this one answer."""

    secret = serializers.CharField(help_text="Base 32, to type.")
    uri = serializers.CharField(help_text="The same, for a QR code.")


class CodeSerializer(serializers.Serializer[Any]):
    """A code of the app."""

    code = serializers.CharField(max_length=32, write_only=True)


class RecoveryCodesSerializer(serializers.Serializer[Any]):
    """Codes for when the phone is lost, each good for once; shown in this one answer."""

    recovery_codes = serializers.ListField(child=serializers.CharField())


class TwoFactorViewSet(viewsets.ViewSet):
    """Switching one's own second factor on and off; both take the password."""

    capability: ClassVar[CapabilityTable] = Capability.PROFILE_EDIT

    @extend_schema(
        summary="Show one's second factor",
        responses=forced_singular_serializer(TwoFactorSerializer),  # type: ignore[no-untyped-call]
    )
    def list(self, request: Request) -> Response:
        """Say whether it is on."""
        is_on, left = two_factor_state(user=person_of(request))
        return Response({"is_on": is_on, "recovery_codes_left": left})

    @extend_schema(summary="Set up a second factor", request=PasswordSerializer, responses={200: EnrolmentSerializer})
    @action(detail=False, methods=["post"])
    def start(self, request: Request) -> Response:
        """Make a secret for the app. It counts once a first code is confirmed."""
        password_proved(request)
        enrolment = two_factor.two_factor_start(actor=Actor.from_request(request), user=person_of(request))
        return Response({"secret": enrolment.secret, "uri": enrolment.uri})

    @extend_schema(
        summary="Switch the second factor on", request=CodeSerializer, responses={200: RecoveryCodesSerializer}
    )
    @action(detail=False, methods=["post"])
    def confirm(self, request: Request) -> Response:
        """Confirm the app with a first code; the answer holds the recovery codes."""
        body = body_of(request, CodeSerializer)
        codes = two_factor.two_factor_confirm(actor=Actor.from_request(request), user=person_of(request), **body)
        return Response({"recovery_codes": codes})

    @extend_schema(summary="Switch the second factor off", request=PasswordSerializer, responses={204: None})
    @action(detail=False, methods=["post"])
    def disable(self, request: Request) -> Response:
        """Switch it off and forget the recovery codes."""
        password_proved(request)
        two_factor.two_factor_disable(actor=Actor.from_request(request), user=person_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)
