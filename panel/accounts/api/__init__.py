"""The accounts' part of the API, and the base that every app's API stands on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the framework imports this package for its defaults, from wherever it is first imported itself
    from rest_framework.routers import BaseRouter


def register(router: "BaseRouter") -> None:
    """Add people, tokens, sessions, audit trail and events to the router."""
    from panel.accounts.api.audit import AuditViewSet, EventViewSet
    from panel.accounts.api.passkeys import PasskeyViewSet
    from panel.accounts.api.sessions import SessionViewSet
    from panel.accounts.api.tokens import TokenViewSet
    from panel.accounts.api.two_factor import TwoFactorViewSet
    from panel.accounts.api.users import UserViewSet

    router.register("users", UserViewSet, basename="user")
    router.register("tokens", TokenViewSet, basename="token")
    router.register("sessions", SessionViewSet, basename="session")
    router.register("two-factor", TwoFactorViewSet, basename="two-factor")
    router.register("passkeys", PasskeyViewSet, basename="passkey")
    router.register("audit", AuditViewSet, basename="audit")
    router.register("events", EventViewSet, basename="event")
