"""Who sends a request to the API: a bearer token, or a browser's session (whose writes need the CSRF token)."""

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from panel.accounts.models import ApiToken, User
from panel.accounts.services.tokens import token_authenticate

KEYWORD = "bearer"


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer fdt_…`. A token that is unknown, expired or revoked is refused, never ignored."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token's owner and the token; None when the request carries no bearer token."""
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != KEYWORD.encode():
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(_("The Authorization header must read “Bearer <token>”."))
        token = token_authenticate(token=parts[1].decode("latin-1"))
        if token is None:
            raise AuthenticationFailed(_("This token is unknown, expired or revoked."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002 (DRF's signature)
        """Return the challenge of a 401."""
        return "Bearer"
