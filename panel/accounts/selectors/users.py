"""Reads of people and their sessions."""

from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from panel.accounts.models import LoginSession, User
from panel.core.clock import now


def user_list() -> QuerySet[User]:
    """Return everybody, by name."""
    return User.objects.order_by("username", "id")


def session_list(*, user: User) -> QuerySet[LoginSession]:
    """Return the sessions of a person that are still alive, the last used first."""
    alive = Session.objects.filter(expire_date__gt=now()).values("session_key")
    return LoginSession.objects.filter(user=user, session_key__in=alive).order_by("-last_seen_at", "-id")
