"""People and their ways in, for tests."""

from datetime import timedelta

from rest_framework.test import APIClient

from panel.accounts.models import ApiToken, User
from panel.core import tokens
from panel.core.clock import now

PASSWORD = "correct-horse-battery"


def person(name, role="viewer", **fields):
    """Make a person with the password of all test people."""
    user = User(username=name, role=role, **fields)
    user.set_password(PASSWORD)
    user.save()
    return user


def token_of(user, *, scope=None, expires_in=timedelta(days=1), revoked=False):
    """Make a token and return its secret text."""
    issued = tokens.issue("fdt")
    at = now()
    ApiToken.objects.create(
        user=user,
        name="test",
        prefix=issued.prefix,
        token_hash=issued.token_hash,
        scope=scope or user.role,
        created_at=at,
        expires_at=at + expires_in,
        revoked_at=at if revoked else None,
    )
    return issued.token


def token_client(user, **token):
    """Return a client that sends a token of this person."""
    client = APIClient(enforce_csrf_checks=True)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(user, **token)}")
    return client


def session_client(user, *, check_csrf=True):
    """Return a client that is logged in as this person, the way a browser is."""
    client = APIClient(enforce_csrf_checks=check_csrf)
    client.force_login(user)
    return client
