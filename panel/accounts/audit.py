"""The audit trail: who did what to which object. Rows are only ever added; a database trigger refuses the rest."""

import json
from dataclasses import dataclass
from typing import Any, Literal, Self

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.http import HttpRequest
from rest_framework.request import Request

from panel.accounts.capabilities import lower_role
from panel.accounts.enums import Role
from panel.accounts.models import ApiToken, AuditEntry, User
from panel.core.addresses import client_address
from panel.core.clock import now
from panel.core.redaction import redact

ActorKind = Literal["user", "token", "agent", "system", "stranger"]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts. id and name: of the user, of the token (name `token of user`), or of the agent; role: what they may do."""

    kind: ActorKind
    id: int | None
    name: str
    role: str = ""
    address: str | None = None
    request_id: str = ""
    user_id: int | None = None

    @classmethod
    def from_request(cls, request: HttpRequest | Request) -> Self:
        """Return who sent this request; a request without a login is a stranger with no role."""
        plain = request._request if isinstance(request, Request) else request  # noqa: SLF001 (DRF's own way to it)
        address, request_id = client_address(plain), getattr(plain, "request_id", "")
        user, token = request.user, getattr(request, "auth", None)
        if not isinstance(user, User):
            return cls(kind="stranger", id=None, name="", address=address, request_id=request_id)
        if isinstance(token, ApiToken):
            return cls(
                kind="token",
                id=token.pk,
                name=f"{token.name} of {user.username}",
                role=lower_role(token.scope, user.role),
                address=address,
                request_id=request_id,
                user_id=user.pk,
            )
        return cls.from_user(user, address=address, request_id=request_id)

    @classmethod
    def from_user(cls, user: User, *, address: str | None = None, request_id: str = "") -> Self:
        """Return the person as an actor where there is no request (a WebSocket)."""
        return cls(
            kind="user",
            id=user.pk,
            name=user.username,
            role=user.role,
            address=address,
            request_id=request_id,
            user_id=user.pk,
        )

    @classmethod
    def system(cls, name: str) -> Self:
        """Return the panel itself, acting through one of its own jobs or commands, with every right."""
        return cls(kind="system", id=None, name=name, role=Role.ADMIN)


def _stored(facts: dict[str, Any] | None) -> Any:
    """Return facts without secrets, JSON-ready: times in ISO 8601, amounts of money as their decimal text."""
    return json.loads(json.dumps(redact(facts), cls=DjangoJSONEncoder))


def audit(
    *,
    actor: Actor,
    action: str,
    target: Model | None = None,
    target_name: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    reason: str = "",
) -> AuditEntry:
    """Add one entry in the caller's transaction, so that a write and its record stand or fall together.

    action: dotted, `server.rename`. before and after: what changed; times and decimals become text, secrets go.
    """
    return AuditEntry.objects.create(
        at=now(),
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_name=actor.name[:200],
        action=action,
        target_kind=target._meta.model_name or "" if target is not None else "",  # noqa: SLF001 (public in Django)
        target_id=target.pk if target is not None else None,
        target_name=(target_name or (str(target) if target is not None else ""))[:200],
        before=_stored(before),
        after=_stored(after),
        reason=reason[:500],
        request_id=actor.request_id[:64],
        address=actor.address,
    )
