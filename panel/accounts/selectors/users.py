"""Reads of people and their sessions."""

from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from panel.accounts.models import LoginSession, Passkey, TwoFactor, User
from panel.core.clock import now


def user_list() -> QuerySet[User]:
    """Return everybody, by name."""
    return User.objects.order_by("username", "id")


def session_list(*, user_id: int) -> QuerySet[LoginSession]:
    """Return the sessions of a person that are still alive, the last used first."""
    alive = Session.objects.filter(expire_date__gt=now()).values("session_key")
    return LoginSession.objects.filter(user_id=user_id, session_key__in=alive).order_by("-last_seen_at", "-id")


def passkey_list(*, user_id: int) -> QuerySet[Passkey]:
    """Return a person's passkeys, the oldest first."""
    return Passkey.objects.filter(user_id=user_id).order_by("id")


def two_factor_state(*, user: User) -> tuple[bool, int]:
    """Return whether the person's second factor is on, and how many recovery codes are left."""
    device = TwoFactor.objects.filter(user=user, confirmed_at__isnull=False).first()
    return device is not None, len(device.recovery_hashes) if device else 0
