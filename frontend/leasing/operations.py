"""Operations as the pages show them: steps with their times, the reason, and what is left at the provider."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.enums import OperationKind, OperationState
from fleet.models import Operation
from fleet.providers.registry import PROVIDERS
from fleet.reasons import REASON_WORDS, Reason
from fleet.selectors.costs import lease_rates
from fleet.selectors.leasing import operation_list, usual_seconds
from frontend.money import rates_text
from panel.core.clock import now
from panel.core.errors import NotFound

STEP_WORDS: Final[Mapping[str, Promise]] = {
    "create": gettext_lazy("Ordered at the provider"),
    "boot": gettext_lazy("Machine runs"),
    "join": gettext_lazy("Agent has joined"),
    "send": gettext_lazy("Sent to the provider"),
    "running": gettext_lazy("Machine runs"),
    "stopped": gettext_lazy("Machine is stopped"),
    "gone": gettext_lazy("Provider confirms that it is gone"),
    "saved": gettext_lazy("Disk is saved"),
}
STEP_STATES: Final[Mapping[str, tuple[str, Promise]]] = {
    "waiting": ("todo", gettext_lazy("to come")),
    "running": ("progress", gettext_lazy("in progress")),
    "done": ("ok", gettext_lazy("done")),
    "failed": ("critical", gettext_lazy("failed")),
}


_FAILED: Final[dict[str, Any]] = {"state": "failed", "tone": "critical", "word": gettext_lazy("failed")}


@dataclass(frozen=True, slots=True)
class Step:
    """One step. seconds: how long it took, or takes; None before it began."""

    name: str
    title: str
    state: str
    tone: str
    word: str | Promise
    started_at: datetime | None
    ended_at: datetime | None
    seconds: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Left:
    """What is left at the provider after a failure. tone: of the banner."""

    tone: str
    sentence: str


def operation_found(operation_id: int) -> Operation:
    """Return one operation with its account, lease and server. Raises NotFound."""
    operation = operation_list().filter(pk=operation_id).first()
    if operation is None:
        raise NotFound(_("There is no such operation."))
    return operation


def machine_name(operation: Operation) -> str:
    """Return what people call the machine: its server's name, the name that was ordered, or its lease's; empty for none."""
    if operation.server is not None:
        return operation.server.name
    return operation.request.get("name") or (operation.lease.title if operation.lease is not None else "")


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def steps_of(operation: Operation, at: datetime) -> list[Step]:
    """Return the steps with their words and times; of a refused operation the step that it never came to has failed."""
    steps = [_step(step, at) for step in operation.steps]
    if operation.state != OperationState.FAILED:
        return steps
    is_told = any(step.state == "failed" for step in steps)
    for place, step in enumerate(steps):
        if step.state == "waiting":
            steps[place] = replace(step, word=_("not reached")) if is_told else replace(step, **_FAILED)
            is_told = True
    return steps


def _step(step: Mapping[str, Any], at: datetime) -> Step:
    started, ended = _time(step["started_at"]), _time(step["ended_at"])
    tone, word = STEP_STATES.get(step["state"], ("unknown", step["state"]))
    return Step(
        name=step["name"],
        title=str(STEP_WORDS.get(step["name"], step["name"])),
        state=step["state"],
        tone=tone,
        word=str(word),
        started_at=started,
        ended_at=ended,
        seconds=((ended or at) - started).total_seconds() if started else None,
        detail=step["detail"],
    )


def elapsed_seconds(operation: Operation, at: datetime) -> float:
    """Return how long an operation took, or has been on its way."""
    return ((operation.ended_at or at) - operation.created_at).total_seconds()


def usual_of(operation: Operation) -> float | None:
    """Return how long such an operation usually takes there, in seconds; None when that is not known."""
    account = operation.account
    if account is None:
        return None
    measured = usual_seconds(kind=OperationKind(operation.kind), account_kind=account.kind)
    if measured is None and operation.kind == OperationKind.ORDER and account.kind in PROVIDERS:
        return PROVIDERS[account.kind].usual_boot.total_seconds()
    return measured


def what_is_left(operation: Operation) -> Left | None:
    """Say what a failed operation left at the provider; None for one that did not fail."""
    lease = operation.lease
    if operation.state != OperationState.FAILED or lease is None:
        return None
    if lease.ended_at is not None:
        sentence = _("Nothing: it is gone.") if lease.external_id else _("Nothing: no machine was made.")
        return Left("ok", sentence)
    if not lease.external_id:
        return Left(
            "warning",
            _("Not known yet. The account is searched for “%(name)s” until it is, and nothing is ordered twice.")
            % {"name": lease.name},
        )
    rate = lease_rates(leases=[lease], at=now())[lease.pk]
    words = {"id": lease.external_id, "state": lease.get_state_display(), "rate": rates_text(rate) if rate else ""}
    if rate:
        return Left("critical", _("The machine %(id)s (%(state)s). It costs %(rate)s per hour.") % words)
    return Left("critical", _("The machine %(id)s (%(state)s). It may cost money; its price is not known.") % words)


def reason_words(operation: Operation) -> tuple[str, str]:
    """Return the sentence and the next step of an operation's reason; empty for none."""
    if not operation.reason or operation.reason not in Reason.values:
        return "", ""
    words = REASON_WORDS[Reason(operation.reason)]
    return str(words.sentence), str(words.next_step)
