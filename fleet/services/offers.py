"""What accounts offer: fetched from time to time, replaced as a whole."""

from datetime import datetime, timedelta
from typing import Final

import structlog
from django.db import transaction
from django.db.models import QuerySet

from fleet.enums import AccountHealth
from fleet.models import Offer, ProviderAccount
from fleet.providers.base import HasOffers, OfferFound
from fleet.providers.errors import ProviderError
from fleet.services.accounts import account_provider
from fleet.services.cleaning import HIGHEST_TERM, clean_integer, clean_json, clean_price, clean_text
from panel.core.clock import now
from panel.core.money import Money

FETCH_EVERY: Final = timedelta(minutes=10)
AGAIN_AFTER_FAILURE: Final = timedelta(minutes=5)
# What the database's columns hold.
MOST: Final = 2**31 - 1
MOST_GPUS: Final = 2**15 - 1

log = structlog.get_logger(__name__)


def offers_due(*, at: datetime) -> list[int]:
    """Return the accounts whose offers are to be fetched, those that answer alone."""
    return list(_due(at).order_by("next_offers_at").values_list("pk", flat=True))


def _due(at: datetime) -> QuerySet[ProviderAccount]:
    return ProviderAccount.objects.filter(
        removed_at=None, is_paused=False, next_offers_at__lte=at, health=AccountHealth.OK
    )


def offers_refresh(*, account_id: int) -> None:
    """Fetch an account's offers when they are due, moving the next time on first, so that a slow answer has one worker.

    Raises ProviderError, as `offers_fetch`.
    """
    at = now()
    if _due(at).filter(pk=account_id).update(next_offers_at=at + AGAIN_AFTER_FAILURE):
        offers_fetch(account_id=account_id)


def _row(account: ProviderAccount, found: OfferFound, at: datetime) -> Offer:
    prices = (
        clean_price(found.price_per_hour),
        clean_price(found.price_per_term, highest=HIGHEST_TERM),
        clean_price(found.price_stopped_per_hour),
    )
    hour, term, stopped = (price.rounded().amount if price is not None else None for price in prices)
    currencies = [price.currency for price in prices if isinstance(price, Money)]
    return Offer(
        account=account,
        key=clean_text(found.key, 200),
        gpu_model=clean_text(found.gpu_model, 64),
        raw_gpu=clean_text(found.raw_gpu, 100),
        gpu_count=found.gpu_count,
        gpu_memory_bytes=clean_integer(found.gpu_memory_bytes),
        region=clean_text(found.region, 64),
        billing=found.billing,
        currency=currencies[0] if currencies else account.currency,
        price_per_hour=hour,
        price_per_term=term,
        price_stopped_per_hour=stopped,
        stock=found.stock,
        stock_count=_count(found.stock_count),
        cpu_count=_count(found.cpu_count),
        memory_bytes=clean_integer(found.memory_bytes),
        disk_bytes=clean_integer(found.disk_bytes),
        details=clean_json(dict(found.details)),
        fetched_at=at,
    )


def _count(value: int | None) -> int | None:
    return value if value is not None and 0 <= value <= MOST else None


def offers_fetch(*, account_id: int) -> int:
    """Replace an account's offers with what the provider lists now; return how many there are.

    Raises ProviderError; the offers of the last fetch stay then, with their age.
    """
    account = ProviderAccount.objects.get(pk=account_id, removed_at=None)
    provider = account_provider(account)
    if not isinstance(provider, HasOffers):
        ProviderAccount.objects.filter(pk=account_id).update(next_offers_at=None)
        return 0
    at = now()
    try:
        made = [_row(account, offer, at) for offer in provider.offers() if 0 < offer.gpu_count <= MOST_GPUS]
        rows = {row.key: row for row in made}
    except ProviderError as error:
        ProviderAccount.objects.filter(pk=account_id).update(next_offers_at=now() + AGAIN_AFTER_FAILURE)
        log.warning("offers.fetch_failed", account_id=account_id, reason=str(error.reason), error=error.message)
        raise
    _replace(account, rows, at)
    return len(rows)


def _replace(account: ProviderAccount, rows: dict[str, Offer], at: datetime) -> None:
    updated = [
        field.name
        for field in Offer._meta.concrete_fields  # noqa: SLF001 (public in Django)
        if field.name not in {"id", "account", "key"}
    ]
    with transaction.atomic():
        ProviderAccount.objects.select_for_update().get(pk=account.pk)
        Offer.objects.filter(account=account).exclude(key__in=rows).delete()
        Offer.objects.bulk_create(
            rows.values(),
            update_conflicts=True,
            unique_fields=["account", "key"],
            update_fields=updated,
            batch_size=500,
        )
        ProviderAccount.objects.filter(pk=account.pk).update(offers_at=at, next_offers_at=at + FETCH_EVERY)
