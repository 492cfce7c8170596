"""Endpoints that need a person now: whose callers are hurt, whose deploy was given up, gateways that fell silent."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from endpoints.enums import GatewayState, Phase, RolloutState
from endpoints.models import Endpoint, Gateway, Rollout
from endpoints.traffic import SILENT_AFTER
from frontend.attention import Attention
from frontend.formatting import said_of
from frontend.serving.words import reason_said
from panel.core.enums import Severity

LISTED: Final = 50
_SEVERITY: Final = {
    Phase.UNAVAILABLE: Severity.CRITICAL,
    Phase.FAILED: Severity.CRITICAL,
    Phase.DEGRADED: Severity.WARNING,
}
# A deploy that returned to the last good revision is news for so long; the endpoint answers as before.
_RETURNED_COUNTS: Final = timedelta(hours=24)


def serving_attention(now: datetime) -> list[Attention]:
    """Return what needs somebody. Three queries."""
    return [*_endpoints(), *_returned(now), *_gateways(now)]


def _endpoints() -> Iterator[Attention]:
    hurt = Endpoint.objects.filter(deleted_at=None, phase__in=list(_SEVERITY)).order_by("phase_changed_at")
    for endpoint in hurt[:LISTED]:
        phase = Phase(endpoint.phase)
        why = reason_said(endpoint.phase_reason)
        words = {
            Phase.UNAVAILABLE: _("callers get no answer."),
            Phase.FAILED: _("its first deploy failed; it never answered."),
            Phase.DEGRADED: _("it answers with fewer replicas than asked for."),
        }[phase]
        sentence = said_of(endpoint.name, f"{words} {why.sentence}".strip())
        href = reverse("endpoint", args=[endpoint.pk])
        since = endpoint.phase_changed_at
        yield Attention(
            f"endpoint.{endpoint.pk}", _SEVERITY[phase], sentence, why.next_step, _("Open endpoint"), href, since
        )


def _returned(now: datetime) -> Iterator[Attention]:
    recent = Rollout.objects.filter(
        state=RolloutState.RETURNED, ended_at__gt=now - _RETURNED_COUNTS, endpoint__deleted_at=None
    ).select_related("endpoint", "to_revision")
    newest: dict[int, Rollout] = {}
    for rollout in recent.order_by("pk")[:LISTED]:
        newest[rollout.endpoint_id] = rollout
    for rollout in newest.values():
        if rollout.endpoint.active_revision_id and rollout.endpoint.active_revision_id > rollout.to_revision_id:
            continue  # a later one serves
        words = {"number": rollout.to_revision.number}
        text = _("revision %(number)s was given up; the one before serves on.") % words
        why = reason_said(rollout.reason)
        href = reverse("endpoint-run", args=[rollout.endpoint_id, rollout.pk])
        yield Attention(
            f"rollout.{rollout.pk}", Severity.WARNING, said_of(rollout.endpoint.name, f"{text} {why.sentence}".strip()),
            why.next_step, _("Open the run"), href, rollout.ended_at,
        )  # fmt: skip


def _gateways(now: datetime) -> Iterator[Attention]:
    for gateway in Gateway.objects.select_related("server").order_by("pk")[:LISTED]:
        is_silent = gateway.reported_at is not None and now - gateway.reported_at > SILENT_AFTER
        if gateway.state == GatewayState.FAILED:
            sentence = said_of(gateway.server.name, _("its gateway does not run."))
            severity, hint = Severity.CRITICAL, gateway.detail or _("Look at its agent's log.")
        elif is_silent:
            sentence = said_of(gateway.server.name, _("its gateway is silent; it may serve on."))
            severity, hint = Severity.WARNING, _("Look at the server and its agent.")
        else:
            continue
        href = reverse("gateways")
        yield Attention(
            f"gateway.{gateway.pk}", severity, sentence, hint, _("Open gateways"), href, gateway.reported_at
        )
