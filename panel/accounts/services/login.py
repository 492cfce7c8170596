"""Logging in and out, for browsers (a session) and for programs (a token).

Attempts are counted before the password is looked at, under the name as typed, whether or not anybody has it: the answer,
its time and its limits are the same for a name that exists and for one that does not.
"""

from datetime import timedelta
from typing import Final, NoReturn

import structlog
from django.contrib.auth import authenticate, login, logout
from django.core.cache import cache
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from panel.accounts.audit import Actor, audit
from panel.accounts.enums import Role
from panel.accounts.models import ApiToken, User
from panel.accounts.services.passkeys import passkey_check, relying_party
from panel.accounts.services.sessions import session_forget, session_note
from panel.accounts.services.tokens import token_store
from panel.accounts.services.two_factor import second_factor_count_try, two_factor_check
from panel.core.addresses import address_group
from panel.core.clock import now
from panel.core.errors import ExternalError, NotAuthenticated, RateLimited
from panel.core.rates import Rate, count_attempt, digest, refund_attempt

PER_ACCOUNT_AND_ADDRESS: Final = Rate(limit=10, period_seconds=300)
PER_ADDRESS: Final = Rate(limit=30, period_seconds=300)
# Many addresses against one account. An address from which that person has logged in lately is exempt, so that a
# stranger cannot lock them out.
PER_ACCOUNT: Final = Rate(limit=50, period_seconds=900)
FAMILIAR_SECONDS: Final = 30 * 86_400
LOG_IN_TOKEN_LIFETIME: Final = timedelta(days=1)
LOG_IN_TOKENS_KEPT: Final = 50
LOG_IN_TOKEN_NAME: Final = "log-in"  # noqa: S105 (a name)

log = structlog.get_logger(__name__)


def _familiar_key(name: str, address: str) -> str:
    return "familiar:" + digest(f"{name}\n{address}")


def _counters(name: str, address: str) -> list[tuple[str, str, Rate]]:
    counters = [
        ("login-address", address, PER_ADDRESS),
        ("login-both", f"{name}\n{address}", PER_ACCOUNT_AND_ADDRESS),
    ]
    if not cache.get(_familiar_key(name, address)):
        counters.append(("login-account", name, PER_ACCOUNT))
    return counters


def _count(counters: list[tuple[str, str, Rate]]) -> None:
    waits = [count_attempt(*counter) for counter in counters]
    longest = max((wait for wait in waits if wait is not None), default=None)
    if longest is not None:
        raise RateLimited(
            _("Too many attempts. Try again in %(minutes)s min.") % {"minutes": max(1, round(longest / 60))},
            retry_after_seconds=longest,
        )


def _refuse(actor: Actor, username: str) -> NoReturn:
    """Record the failure and answer. A name that nobody has is not recorded: people type passwords into that field."""
    known = User.objects.filter(username__iexact=username).first()
    audit(
        actor=actor,
        action="auth.login_failed",
        target=known,
        target_name=known.username if known else _("(unknown name)"),
    )
    raise NotAuthenticated(_("Name or password is wrong."), code="wrong_credentials")


def credentials_check(*, actor: Actor, username: str, password: str) -> User:
    """Return the person with this name and password. Raises NotAuthenticated, RateLimited, or ExternalError without Valkey."""
    name, address = User.normalize_username(username).casefold(), address_group(actor.address)
    try:
        counters = _counters(name, address)
        _count(counters)
    except RedisError as error:
        log.exception("auth.rate_limit_unavailable")
        raise ExternalError(
            _("Logging in is not possible while Valkey does not answer."), code="valkey_unavailable"
        ) from error
    user = authenticate(username=username, password=password)
    if not isinstance(user, User):
        _refuse(actor, username)
    for counter in counters:
        refund_attempt(*counter)
    cache.set(_familiar_key(name, address), 1, FAMILIAR_SECONDS)
    return user


def second_factor_check(*, actor: Actor, user: User, code: str) -> None:
    """Take the code of the second factor, if the person has one; a wrong one stands in the audit trail.

    Raises NotAuthenticated (`code_required`, `wrong_code`) or RateLimited.
    """
    try:
        two_factor_check(user=user, code=code)
    except NotAuthenticated:
        if code:
            audit(actor=actor, action="auth.login_failed", target=user, after={"step": "second factor"})
        raise


def passkey_log_in_check(*, request: HttpRequest, user: User, credential: str) -> None:
    """Take a passkey as the second factor; a refused one stands in the audit trail.

    Raises NotAuthenticated (`wrong_passkey`), RateLimited, or InvalidInput where the panel has no host name.
    """
    second_factor_count_try(user)
    try:
        session_key = request.session.session_key or ""
        passkey_check(user=user, party=relying_party(request), session_key=session_key, credential=credential)
    except NotAuthenticated:
        audit(actor=Actor.from_request(request), action="auth.login_failed", target=user, after={"step": "passkey"})
        raise


def session_log_in(*, request: HttpRequest, user: User) -> None:
    """Start a session for the person: a new key, whatever the browser had before."""
    with transaction.atomic():
        login(request, user)
        session_note(request)
        audit(actor=Actor.from_request(request), action="auth.login", target=user, after={"method": "session"})


def session_log_out(*, request: HttpRequest) -> None:
    """End the session of this request; sockets that it opened close within seconds."""
    user = request.user
    if isinstance(user, User):
        with transaction.atomic():
            audit(actor=Actor.from_request(request), action="auth.logout", target=user)
            session_forget(request.session.session_key or "")
    logout(request)


def token_log_in(*, actor: Actor, username: str, password: str, code: str = "") -> tuple[ApiToken, str]:
    """Return a new token with everything its owner may do, for a day, and its secret text.

    The newest fifty of one person stay; older ones are revoked. Raises as `credentials_check` and `second_factor_check`.
    """
    user = credentials_check(actor=actor, username=username, password=password)
    second_factor_check(actor=actor, user=user, code=code)
    caller = Actor.from_user(user, address=actor.address, request_id=actor.request_id)
    at = now()
    with transaction.atomic():
        mine = ApiToken.objects.filter(user=user, name=LOG_IN_TOKEN_NAME, revoked_at=None).order_by("-id")
        surplus = list(mine.values_list("pk", flat=True)[LOG_IN_TOKENS_KEPT - 1 :])
        ApiToken.objects.filter(pk__in=surplus).update(revoked_at=at)
        User.objects.filter(pk=user.pk).update(last_login=at)
        audit(actor=caller, action="auth.login", target=user, after={"method": "token"})
        return token_store(
            actor=caller,
            owner=user,
            name=LOG_IN_TOKEN_NAME,
            scope=Role(user.role),
            expires_at=at + LOG_IN_TOKEN_LIFETIME,
        )
