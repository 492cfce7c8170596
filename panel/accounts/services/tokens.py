"""API tokens: made, used, revoked. A token can do what its scope says, and never more than its owner at that moment."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from panel.accounts.audit import Actor, audit
from panel.accounts.capabilities import ROLE_ORDER, Capability, has_capability
from panel.accounts.enums import Role
from panel.accounts.models import ApiToken, User
from panel.core import tokens
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound, PermissionRefused

LAST_USE_RESOLUTION: Final = timedelta(minutes=1)
DEFAULT_LIFETIME: Final = timedelta(days=90)
MAX_LIFETIME: Final = timedelta(days=366)
MAX_TOKENS_PER_USER: Final = 100


def token_authenticate(*, token: str) -> ApiToken | None:
    """Return the live token with its owner, or None: unknown, expired, revoked, or of a deactivated owner.

    Notes its last use, at most once a minute.
    """
    prefix = tokens.parse(token, kind=tokens.API_TOKEN)
    if prefix is None:
        return None
    row = ApiToken.objects.select_related("user").filter(prefix=prefix).first()
    if row is None or not tokens.matches(token, row.token_hash):
        return None
    at = now()
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= at) or not row.user.is_active:
        return None
    _note_use(row, at)
    return row


def _note_use(row: ApiToken, at: datetime) -> None:
    if row.last_used_at is None or at - row.last_used_at >= LAST_USE_RESOLUTION:
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=at)
        row.last_used_at = at


def _check_scope(*, actor: Actor, owner: User, scope: Role) -> None:
    if ROLE_ORDER.index(scope) > ROLE_ORDER.index(Role(actor.role)):
        raise PermissionRefused(_("A token cannot be given more than you may do yourself."))
    if ROLE_ORDER.index(scope) > ROLE_ORDER.index(Role(owner.role)):
        raise InvalidInput(_("A token cannot be given more than its owner may do."), field="scope")


def _expiry(*, wanted: datetime | None, using: ApiToken | None, at: datetime) -> datetime:
    """Return when the new token ends. One made with a token never outlives it, unless that token could do anything anyway."""
    latest = at + MAX_LIFETIME
    if using is not None and using.expires_at is not None and using.scope != Role.ADMIN:
        latest = min(latest, using.expires_at)
    if wanted is None:
        return min(at + DEFAULT_LIFETIME, latest)
    if wanted <= at:
        raise InvalidInput(_("The expiry lies in the past."), field="expires_at")
    if wanted > latest:
        raise InvalidInput(
            _("The latest expiry possible here is %(at)s.") % {"at": latest.isoformat()}, field="expires_at"
        )
    return wanted


def _live(owner: User, at: datetime) -> int:
    return ApiToken.objects.filter(user=owner, revoked_at=None, expires_at__gt=at).count()


def token_create(
    *,
    actor: Actor,
    owner: User,
    name: str,
    scope: str = Role.VIEWER,
    expires_at: datetime | None = None,
    using: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Make a token and return it with its secret text, which is shown this once and stored nowhere.

    Without `expires_at` it lives for 90 days. using: the token that asks for it, when it was not a person's session.
    Raises PermissionRefused, InvalidInput or Conflict.
    """
    at = now()
    if not name.strip():
        raise InvalidInput(_("Give the token a name by which you will know it."), field="name")
    _check_scope(actor=actor, owner=owner, scope=Role(scope))
    ends = _expiry(wanted=expires_at, using=using, at=at)
    if _live(owner, at) >= MAX_TOKENS_PER_USER:
        raise Conflict(_("There are %(count)s tokens already; revoke some first.") % {"count": MAX_TOKENS_PER_USER})
    with transaction.atomic():
        return token_store(actor=actor, owner=owner, name=name.strip(), scope=Role(scope), expires_at=ends)


def token_store(*, actor: Actor, owner: User, name: str, scope: Role, expires_at: datetime) -> tuple[ApiToken, str]:
    """Write the row and its audit entry, in the caller's transaction; the checks are the caller's."""
    issued = tokens.issue(tokens.API_TOKEN)
    row = ApiToken.objects.create(
        user=owner,
        name=name,
        prefix=issued.prefix,
        token_hash=issued.token_hash,
        scope=scope,
        created_at=now(),
        expires_at=expires_at,
    )
    audit(actor=actor, action="token.create", target=row, after=_facts(row))
    return row, issued.token


def _facts(row: ApiToken) -> dict[str, object]:
    return {
        "owner": row.user.username,
        "name": row.name,
        "scope": row.scope,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }


def token_revoke(*, actor: Actor, token_id: int) -> ApiToken:
    """End a token for good. One's own, or anybody's with `tokens.manage`; revoking twice changes nothing.

    Raises NotFound, also for a token of somebody else, so that nobody learns which exist.
    """
    with transaction.atomic():
        row = ApiToken.objects.select_for_update(of=("self",)).select_related("user").filter(pk=token_id).first()
        if row is None or not _may_touch(actor, row):
            raise NotFound(_("There is no such token."))
        if row.revoked_at is None:
            row.revoked_at = now()
            row.save(update_fields=["revoked_at"])
            audit(actor=actor, action="token.revoke", target=row, before=_facts(row))
    return row


def _may_touch(actor: Actor, row: ApiToken) -> bool:
    if has_capability(actor.role, Capability.TOKENS_MANAGE):
        return True
    return actor.user_id == row.user_id and has_capability(actor.role, Capability.TOKENS_OWN)
