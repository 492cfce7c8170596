"""What is rented and needs a person now: machines whose end is not confirmed, machines that nobody knows, keys refused."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from fleet.enums import AccountHealth, DriftKind
from fleet.models import Drift, Lease, ProviderAccount
from fleet.reasons import REASON_WORDS, Reason
from fleet.selectors.costs import lease_rates
from fleet.selectors.leasing import leases_renewing, leases_unconfirmed
from frontend.attention import Attention
from frontend.formatting import ago
from frontend.leasing.tabs import open_drifts
from frontend.money import price_text, rates_text
from panel.core.enums import Severity

LISTED: Final = 50
_SEVERITY: Final = {
    DriftKind.MISSING_AT_PROVIDER: Severity.WARNING,
    DriftKind.UNKNOWN_AT_PROVIDER: Severity.CRITICAL,
    DriftKind.SPEC_DIFFERS: Severity.WARNING,
    DriftKind.PRICE_DIFFERS: Severity.WARNING,
}


def rental_attention(now: datetime) -> list[Attention]:
    """Return what needs somebody. Seven queries at most."""
    unconfirmed = list(leases_unconfirmed().order_by("pk")[:LISTED])
    rates = lease_rates(leases=unconfirmed, at=now) if unconfirmed else {}
    return [
        *(_unconfirmed(lease, rates_text(rates[lease.pk] or {})) for lease in unconfirmed),
        *(_drift(drift) for drift in open_drifts().order_by("-first_seen_at")[:LISTED]),
        *_accounts(),
        *(_renewal(lease, now) for lease in leases_renewing(at=now)[:LISTED]),
    ]


def _unconfirmed(lease: Lease, rate: str) -> Attention:
    words = {"name": lease.title, "rate": rate}
    if rate:
        sentence = _("%(name)s: termination unconfirmed, still billing %(rate)s per hour.") % words
    else:
        sentence = _("%(name)s: termination unconfirmed, still billing; its price is not known.") % words
    hint = _("It is asked for until the provider confirms it. Look into the provider's console as well.")
    href = reverse("lease", args=[lease.pk])
    since = lease.termination_requested_at
    return Attention(f"unconfirmed.{lease.pk}", Severity.CRITICAL, sentence, hint, _("Open lease"), href, since)


def _drift(drift: Drift) -> Attention:
    words = {
        "name": drift.lease.title if drift.lease else drift.name or drift.external_id,
        "account": drift.account.name,
    }
    words["kind"] = drift.get_kind_display()
    if drift.cost_per_hour is not None:
        words["rate"] = price_text(drift.cost_per_hour, drift.currency)
        sentence = _("%(name)s in %(account)s: %(kind)s. It costs %(rate)s per hour.") % words
    else:
        sentence = _("%(name)s in %(account)s: %(kind)s.") % words
    hint = (
        _("Adopt it, end it, or ignore it for a time.")
        if drift.kind == DriftKind.UNKNOWN_AT_PROVIDER
        else _("Accept what the provider says, or ignore it for a time.")
    )
    severity = _SEVERITY[DriftKind(drift.kind)]
    return Attention(f"drift.{drift.pk}", severity, sentence, hint, _("Decide"), reverse("drift"), drift.first_seen_at)


def _renewal(lease: Lease, now: datetime) -> Attention:
    assert lease.renews_at is not None  # noqa: S101 (asked for by the selector)
    words = {"name": lease.title, "when": ago(lease.renews_at, now)}
    if lease.renews_at <= now:
        sentence = _("%(name)s: its paid term ended %(when)s.") % words
        hint = _("Write down the new term, or close the contract.")
    elif lease.is_renewing:
        sentence = _("%(name)s: its paid term renews itself %(when)s.") % words
        hint = _("Until then it can be ended.")
    else:
        sentence = _("%(name)s: its paid term ends %(when)s and does not renew itself.") % words
        hint = _("Renew it at its provider, or move its work away before.")
    severity = Severity.INFO if lease.is_renewing else Severity.WARNING
    return Attention(f"renews.{lease.pk}", severity, sentence, hint, _("Open lease"), reverse("lease", args=[lease.pk]))


def _accounts() -> Iterator[Attention]:
    failing = ProviderAccount.objects.filter(removed_at=None, health__in=[AccountHealth.REFUSED, AccountHealth.FAILING])
    for account in failing.order_by("pk")[:LISTED]:
        words = REASON_WORDS[Reason(account.health_reason)]
        sentence = _("Account %(name)s: %(why)s") % {"name": account.name, "why": words.sentence}
        severity = Severity.CRITICAL if account.health == AccountHealth.REFUSED else Severity.WARNING
        href = reverse("provider", args=[account.pk])
        yield Attention(
            f"account.{account.pk}",
            severity,
            sentence,
            str(words.next_step),
            _("Open account"),
            href,
            account.last_error_at,
        )
