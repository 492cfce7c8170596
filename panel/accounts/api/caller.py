"""Who called, as the types that the services want."""

from rest_framework.request import Request

from panel.accounts.models import ApiToken, User
from panel.core.errors import NotAuthenticated


def person_of(request: Request) -> User:
    """Return the person behind the session or the token. Raises NotAuthenticated for a stranger."""
    if not isinstance(request.user, User):
        raise NotAuthenticated("Log in first.")
    return request.user


def token_of(request: Request) -> ApiToken | None:
    """Return the token that the request came with, or None for a session."""
    return request.auth if isinstance(request.auth, ApiToken) else None
