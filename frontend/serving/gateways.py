"""Gateways as their page shows them: state, how far behind they are, what goes through them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Sum
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from endpoints.enums import GatewayState
from endpoints.models import Endpoint, EndpointTraffic, Gateway
from endpoints.selectors import gateway_list, gateway_url
from endpoints.services.routing import routing_version
from endpoints.traffic import SILENT_AFTER
from panel.core.errors import NotFound

RECENT: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class GatewayRow:
    """One gateway. behind: changes that it has not applied; per_second: requests, None when it tells none."""

    gateway: Gateway
    url: str
    newest: int
    is_silent: bool
    per_second: float | None
    failed_share: float | None
    endpoints: int

    @property
    def behind(self) -> int:
        """Return how many changes it has not applied."""
        return max(self.newest - self.gateway.applied_version, 0)

    @property
    def has_tls(self) -> bool:
        """Say whether it ends TLS itself."""
        return bool(self.gateway.certificate_file)

    @property
    def tone(self) -> str:
        """Return the state's mark; one that is silent may well be serving, and nobody knows."""
        if self.is_silent:
            return "warning"
        return {"serving": "ok", "failed": "critical"}.get(self.gateway.state, "progress")


def gateway_rows(at: datetime) -> list[GatewayRow]:
    """Return every gateway. Three queries."""
    newest, start = routing_version(), at - RECENT
    spans = EndpointTraffic.objects.filter(from_at__gte=start).values("gateway_id")
    counted = spans.annotate(n=Sum("requests"), on=Count("endpoint", distinct=True))
    told = {row["gateway_id"]: (int(row["n"]), int(row["on"])) for row in counted}
    failed = _failed(start)
    return [_row(each, newest, told.get(each.pk), failed.get(each.pk, 0), at) for each in gateway_list()]


def _failed(start: datetime) -> dict[int, int]:
    """Return requests that ended in 5xx, by gateway."""
    found: dict[int, int] = {}
    rows = EndpointTraffic.objects.filter(from_at__gte=start, statuses__has_any_keys=_FIVES)
    for gateway_id, statuses in rows.values_list("gateway_id", "statuses")[:20_000]:
        found[gateway_id] = found.get(gateway_id, 0) + sum(n for key, n in statuses.items() if key.startswith("5"))
    return found


_FIVES: Final = ["500", "501", "502", "503", "504", "5xx"]


def _row(gateway: Gateway, newest: int, told: tuple[int, int] | None, failed: int, at: datetime) -> GatewayRow:
    is_silent = gateway.reported_at is None or at - gateway.reported_at > SILENT_AFTER
    number = told[0] if told else (None if is_silent else 0)
    return GatewayRow(
        gateway=gateway,
        url=gateway_url(gateway),
        newest=newest,
        is_silent=is_silent and gateway.state != GatewayState.PENDING,
        per_second=number / RECENT.total_seconds() if number is not None else None,
        failed_share=100 * failed / number if number else None,
        endpoints=told[1] if told else 0,
    )


def gateway_found(gateway_id: int) -> Gateway:
    """Return one gateway with its server. Raises NotFound."""
    found = gateway_list().filter(pk=gateway_id).first()
    if found is None:
        raise NotFound(_("There is no such gateway."))
    return found


def giving_up(gateway: Gateway) -> list[str]:
    """Return who loses what when a gateway is given up. Two queries."""
    names = list(Endpoint.objects.filter(deleted_at=None).order_by("name").values_list("name", flat=True))
    others = Gateway.objects.exclude(pk=gateway.pk).count()
    url = gateway_url(gateway)
    said = [_("Whoever calls %(url)s gets no answer any more.") % {"url": url}]
    if names:
        shown = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
        words = {"count": len(names), "names": shown}
        said.append(
            ngettext(
                "%(count)s endpoint loses this address: %(names)s.",
                "%(count)s endpoints lose this address: %(names)s.",
                len(names),
            )
            % words
        )
    if others:
        said.append(
            ngettext("%(count)s other gateway serves on.", "%(count)s other gateways serve on.", others)
            % {"count": others}
        )
    else:
        said.append(_("It is the only one: nobody reaches any endpoint then. Replicas run on and cost what they cost."))
    said.append(_("What went through it is forgotten with it."))
    return said
