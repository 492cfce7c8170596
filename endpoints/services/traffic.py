"""What went through gateways, in spans of 10 s: stored once, counted against keys' tokens, forgotten after a while."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from endpoints.models import Endpoint, EndpointTraffic, Gateway
from endpoints.services.keys import key_usage_note
from fleet.agent import orders
from panel.core.clock import now
from panel.core.errors import InvalidInput, TooLarge

KEPT: Final = timedelta(days=7)
_FAR: Final = timedelta(minutes=5)
_MOST: Final = 2**31 - 1
_BATCH: Final = 20_000


def traffic_store(*, gateway: Gateway, report: orders.TrafficReport) -> None:
    """Store one span of a gateway, in the caller's transaction; one that is there is left. Raises InvalidInput or TooLarge."""
    if len(report.endpoints) > orders.LIMITS["endpoints"]:
        raise TooLarge(_("No gateway has so many endpoints."))
    at = now()
    try:
        from_at = datetime.fromtimestamp(report.from_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(_("`from_ms` is no time.")) from None
    if not at - KEPT < from_at < at + _FAR:
        return
    ids = dict(
        Endpoint.objects.filter(deleted_at=None, name__in=[each.endpoint for each in report.endpoints]).values_list(
            "name", "pk"
        )
    )
    told = [each for each in report.endpoints if each.endpoint in ids]
    rows = [_row(gateway, ids[each.endpoint], from_at, each) for each in told]
    EndpointTraffic.objects.bulk_create(rows, ignore_conflicts=True)
    key_usage_note(told, at=at)


def _row(gateway: Gateway, endpoint_id: int, from_at: datetime, told: orders.EndpointTraffic) -> EndpointTraffic:
    return EndpointTraffic(
        gateway=gateway,
        endpoint_id=endpoint_id,
        from_at=from_at,
        requests=_count(told.requests),
        statuses={key[:8]: _count(value) for key, value in list(told.statuses.items())[:16]},
        queue=_histogram(told.queue),
        first_byte=_histogram(told.first_byte),
        total=_histogram(told.total),
        bytes_in=min(max(told.bytes_in, 0), 2**62),
        bytes_out=min(max(told.bytes_out, 0), 2**62),
        in_flight=_count(told.in_flight) if told.in_flight is not None else None,
        retries=_count(told.retries),
        limited=_count(told.limited),
        probes=_count(told.probes),
        tokens=_tokens(told),
    )


def _tokens(told: orders.EndpointTraffic) -> int | None:
    """Return the tokens of callers with a key, as engines reported them or gateways estimated them; None without such callers.

    What the panel's own probes have used is taken out.
    """
    if not told.requests_by_key:
        return None
    counts = [*told.tokens_by_key.values(), *told.estimated_tokens_by_key.values()]
    return min(max(sum(max(each, 0) for each in counts) - max(told.probe_tokens, 0), 0), 2**62)


def _count(value: int) -> int:
    return min(max(value, 0), _MOST)


def _histogram(told: orders.Histogram) -> dict[str, Any]:
    """Return a histogram as it is kept: the buckets of 1 µs to 12 days, each with a count."""
    buckets = {str(key): _count(value) for key, value in told.buckets.items() if -320 <= key <= 960 and value > 0}
    return {"count": _count(told.count), "sum_ms": max(told.sum_ms, 0.0), "buckets": buckets}


def traffic_forget(*, at: datetime) -> None:
    """Delete spans older than is kept, in pieces that hold nobody up."""
    while True:
        old = EndpointTraffic.objects.filter(from_at__lt=at - KEPT).values_list("pk", flat=True)[:_BATCH]
        if not EndpointTraffic.objects.filter(pk__in=list(old)).delete()[0]:
            return
