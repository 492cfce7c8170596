"""Filters of the pages about go-live tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from endpoints.models import Rollout
from endpoints.rollout.plan import Gate
from endpoints.services.gating import gate_of
from frontend.golive.report import parts_of
from monitoring.golive.enums import Outcome
from monitoring.golive.words import outcome_name
from monitoring.golive_runs.models import GoLiveRun

register = template.Library()

GATES: Final[Mapping[Gate, tuple[str | Promise, str]]] = {
    Gate.WAITING: (_("The go-live test begins when the new replicas are ready."), "progress"),
    Gate.RUNNING: (_("The go-live test is under way: no request goes to the new revision yet."), "progress"),
    Gate.HELD: (_("The go-live test proved nothing: the new revision stays without requests."), "warning"),
    Gate.FAILED: (_("The go-live test has failed."), "critical"),
    Gate.OPEN: (_("The go-live test has passed."), "ok"),
}


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate on the page of its rollout. said: why its test came out as it did."""

    state: str
    word: str
    tone: str
    run: GoLiveRun | None
    said: Sequence[str]


@register.filter
def golive_outcome(outcome: str) -> str:
    """Return a verdict in words."""
    return outcome_name(Outcome(outcome))


@register.filter
def share(value: float) -> str:
    """Return a share as percent, as exact as it is small: 0.01 → "1%", 0.00345 → "0.34%"."""
    return f"{float(value) * 100:.2g}%"


@register.filter
def quantile_name(q: float) -> str:
    """Return a percentile's name: 0.95 → "P95"."""
    return f"P{float(q) * 100:g}"


@register.simple_tag
def gate_of_rollout(rollout: Rollout) -> GateView | None:
    """Return how the gate of a rollout stands for its page; None where there is none. Two queries where there is."""
    if rollout.gate is None:
        return None
    run = GoLiveRun.objects.filter(pk=rollout.golive_run_id or 0).first()
    state = gate_of(rollout)
    word, tone = GATES[state]
    found = parts_of(run, is_whole=False) if run is not None and run.ended_at is not None else []
    said = [sentence for view in found for sentence in (*view.reasons, view.lost) if sentence]
    return GateView(state.value, str(word), tone, run, said)
