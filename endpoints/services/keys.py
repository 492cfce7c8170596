"""Callers' keys: made, revoked, held while over their tokens; secrets that engines get by name."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import redis
import structlog
from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from endpoints.models import ApiKey, Endpoint, Secret
from endpoints.services.routing import routing_next
from fleet.agent import orders
from panel.accounts.audit import Actor, audit
from panel.core import tokens
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound
from panel.core.tokens import IssuedToken

USAGE_SECONDS: Final = 60
_SECRET_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
SECRET_BYTES: Final = 8_192
log = structlog.get_logger(__name__)


def key_create(
    *,
    name: str,
    actor: Actor,
    endpoints: Sequence[str] = (),
    expires_at: datetime | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
) -> tuple[ApiKey, IssuedToken]:
    """Make a key for a caller; its text is in the answer and kept nowhere. Raises InvalidInput."""
    at = now()
    if not name.strip():
        raise InvalidInput(_("A key needs a name by which it is known."), field="name")
    if expires_at is not None and expires_at <= at:
        raise InvalidInput(_("That time is over."), field="expires_at")
    missing = set(endpoints) - set(
        Endpoint.objects.filter(name__in=endpoints, deleted_at=None).values_list("name", flat=True)
    )
    if missing:
        raise InvalidInput(_("There is no such endpoint: %(names)s") % {"names": ", ".join(sorted(missing))})
    issued = tokens.issue(tokens.ENDPOINT_KEY)
    with transaction.atomic():
        key = ApiKey.objects.create(
            name=name.strip()[:100],
            prefix=issued.prefix,
            digest=issued.token_hash,
            endpoints=sorted(set(endpoints)),
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            created_at=at,
            created_by_name=actor.name[:200],
            expires_at=expires_at,
            routing_version=routing_next(),
        )
        after = {"endpoints": key.endpoints, "expires_at": expires_at}
        audit(actor=actor, action="key.create", target=key, target_name=key.name, after=after)
    return key, issued


def key_revoke(*, key_id: int, actor: Actor) -> ApiKey:
    """End a key; gateways refuse it within seconds. One that has ended is left so. Raises NotFound."""
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().filter(pk=key_id).first()
        if key is None:
            raise NotFound(_("There is no such key."))
        if key.revoked_at is None:
            key.revoked_at, key.routing_version = now(), routing_next()
            key.save(update_fields=["revoked_at", "routing_version"])
            audit(actor=actor, action="key.revoke", target=key, target_name=key.name)
    return key


def _usage_key(key_id: int, at: datetime) -> str:
    return f"fleetdeck:key-tokens:{key_id}:{int(at.timestamp()) // USAGE_SECONDS}"


def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1.0, socket_connect_timeout=1.0)


def key_usage_note(told: Sequence[orders.EndpointTraffic], *, at: datetime) -> None:
    """Count what gateways reported against their keys' minute; without Valkey nothing is held, and the log says so.

    What an engine did not report, because the caller did not ask for it, counts as the gateway estimated it.
    """
    used: Counter[int] = Counter()
    seen: set[int] = set()
    for each in told:
        told_tokens = [*each.tokens_by_key.items(), *each.estimated_tokens_by_key.items()]
        for key_id, count in told_tokens[:2000]:
            if key_id.isdigit():
                used[int(key_id)] += max(count, 0)
        seen |= {int(key_id) for key_id in each.requests_by_key if key_id.isdigit()}
    if seen:
        ApiKey.objects.filter(pk__in=[pk for pk in seen if pk < 2**62]).update(last_used_at=at)
    if not used:
        return
    try:
        pipeline = _client().pipeline(transaction=False)
        for pk, count in used.items():
            pipeline.incrby(_usage_key(pk, at), count)
            pipeline.expire(_usage_key(pk, at), 3 * USAGE_SECONDS)
        pipeline.execute()
    except (redis.RedisError, OSError) as error:
        log.warning("endpoints.tokens_not_counted", error=str(error))


def keys_settle(*, at: datetime) -> None:
    """Hold keys over their tokens of this minute until it ends, and let go those whose time is over."""
    limited = list(ApiKey.objects.filter(revoked_at=None).exclude(tokens_per_minute=None))
    if not limited:
        return
    try:
        counts = _client().mget([_usage_key(key.pk, at) for key in limited])
    except (redis.RedisError, OSError) as error:
        log.warning("endpoints.tokens_not_counted", error=str(error))
        return
    until = datetime.fromtimestamp((int(at.timestamp()) // USAGE_SECONDS + 1) * USAGE_SECONDS, at.tzinfo)
    for key, count in zip(limited, counts, strict=True):
        is_over = int(count or 0) >= (key.tokens_per_minute or 0)
        if is_over and (key.held_until is None or key.held_until < until):
            _hold(key, until)
        elif key.held_until is not None and key.held_until <= at:
            _hold(key, None)


def _hold(key: ApiKey, until: datetime | None) -> None:
    with transaction.atomic():
        ApiKey.objects.filter(pk=key.pk).update(held_until=until, routing_version=routing_next())


def secret_set(*, name: str, value: str, actor: Actor) -> Secret:
    """Keep a secret under a name that engines' environments refer to, or replace it. Raises InvalidInput."""
    if _SECRET_NAME.fullmatch(name) is None:
        raise InvalidInput(_("A name is of letters, digits, _ and -, at most 64: HF_TOKEN."), field="name")
    if not value or len(value.encode()) > SECRET_BYTES or "\0" in value:
        raise InvalidInput(_("A secret is a text of at most 8 KB."), field="value")
    at = now()
    with transaction.atomic():
        secret = Secret.objects.select_for_update().filter(name=name).first()
        if secret is None:
            secret = Secret(name=name, created_at=at, created_by_name=actor.name[:200])
        secret.value, secret.changed_at = value, at
        secret.save()
        audit(actor=actor, action="secret.set", target=secret, target_name=name)
    return secret


def secret_delete(*, name: str, actor: Actor) -> None:
    """Forget a secret; engines that run keep what they were given, and none starts with it again. Raises NotFound."""
    with transaction.atomic():
        secret = Secret.objects.select_for_update().filter(name=name).first()
        if secret is None:
            raise NotFound(_("There is no such secret."))
        audit(actor=actor, action="secret.delete", target=secret, target_name=name)
        secret.delete()
