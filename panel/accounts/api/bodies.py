"""What a request's body says, checked against its serializer."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from panel.accounts.api.caller import person_of
from panel.accounts.services.users import password_prove


class PasswordSerializer(serializers.Serializer[Any]):
    """A new password."""

    password = serializers.CharField(max_length=1024, write_only=True, trim_whitespace=False)


def body_of(
    request: Request, serializer: type[serializers.BaseSerializer[Any]], *, partial: bool = False
) -> dict[str, Any]:
    """Return the fields of the body. Raises ValidationError (400) with all that is wrong with them."""
    body = serializer(data=request.data, partial=partial)
    body.is_valid(raise_exception=True)
    fields: dict[str, Any] = body.validated_data
    return fields


def password_proved(request: Request) -> None:
    """Make sure that whoever asks knows the password of the account. Raises InvalidInput or RateLimited."""
    password_prove(user=person_of(request), **body_of(request, PasswordSerializer))
