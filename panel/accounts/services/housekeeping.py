"""What the accounts throw away by themselves: ended sessions at once, ended tokens after they were of use in lists."""

from datetime import timedelta
from typing import Final

import structlog
from django.contrib.sessions.models import Session
from django.db.models import Q

from panel.accounts.models import ApiToken, LoginSession
from panel.core.clock import now

KEPT: Final = timedelta(days=90)

log = structlog.get_logger(__name__)


def accounts_clean() -> None:
    """Remove sessions that ran out, rows of sessions that are gone, and tokens that ended 90 days ago. Repeatable.

    The audit trail keeps that the tokens were made and revoked.
    """
    at = now()
    Session.objects.filter(expire_date__lte=at).delete()
    sessions, _rows = LoginSession.objects.exclude(session_key__in=Session.objects.values("session_key")).delete()
    ended = Q(expires_at__lt=at - KEPT) | Q(revoked_at__lt=at - KEPT)
    tokens, _rows = ApiToken.objects.filter(ended).delete()
    log.info("accounts.cleaned", sessions=sessions, tokens=tokens)
