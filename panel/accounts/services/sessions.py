"""Sessions of browsers: noted and ended. A session lives in Django's table; open sockets look there whether it still does."""

from datetime import timedelta
from typing import Final

from django.contrib.auth import update_session_auth_hash
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from panel.accounts.audit import Actor, audit
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import LoginSession, User
from panel.core.addresses import client_address
from panel.core.clock import now
from panel.core.errors import NotFound

LAST_SEEN_RESOLUTION: Final = timedelta(minutes=1)


def session_note(request: HttpRequest) -> None:
    """Note from where, with what and when the session of this request was last used."""
    key = request.session.session_key
    if key is None or not isinstance(request.user, User):
        return
    at = now()
    seen = {
        "user": request.user,
        "last_seen_at": at,
        "address": client_address(request),
        "user_agent": request.headers.get("User-Agent", "")[:300].replace("\x00", ""),
    }
    LoginSession.objects.update_or_create(session_key=key, defaults=seen, create_defaults={**seen, "created_at": at})


def session_refresh(request: HttpRequest, user: User) -> None:
    """Carry the request's session, if it has one, over a change of its person's password, under a new key."""
    old = request.session.session_key
    if old is None:
        return
    update_session_auth_hash(request, user)
    LoginSession.objects.filter(session_key=old).update(session_key=request.session.session_key)


def session_forget(session_key: str) -> None:
    """Delete the session of this key and its row, if there are any."""
    Session.objects.filter(session_key=session_key).delete()
    LoginSession.objects.filter(session_key=session_key).delete()


def session_end(*, actor: Actor, session_id: int) -> None:
    """End one session: one's own, or anybody's with `users.manage`. Raises NotFound."""
    with transaction.atomic():
        row = LoginSession.objects.select_for_update(of=("self",)).select_related("user").filter(pk=session_id).first()
        if row is None or not (row.user_id == actor.user_id or has_capability(actor.role, Capability.USERS_MANAGE)):
            raise NotFound(_("There is no such session."))
        session_forget(row.session_key)
        audit(actor=actor, action="session.end", target=row.user, after={"address": row.address})


def sessions_end_all(*, actor: Actor, user: User, except_key: str | None = None, reason: str = "") -> int:
    """End every session of the person but the one named; return how many ended."""
    with transaction.atomic():
        keys = set(
            LoginSession.objects.filter(user=user).exclude(session_key=except_key).values_list("session_key", flat=True)
        )
        LoginSession.objects.filter(session_key__in=keys).delete()
        ended, _rows = Session.objects.filter(session_key__in=keys, expire_date__gt=now()).delete()
        if keys:
            audit(actor=actor, action="session.end_all", target=user, after={"ended": ended}, reason=reason)
    return ended
