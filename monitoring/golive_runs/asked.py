"""What is asked of a go-live test: promise, load and caps; its plan for each place, and what it will take. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

import msgspec
from django.utils.translation import gettext as _
from msgspec import Meta, Struct

from fleet.agent.load.order import MOST_CONCURRENCY
from monitoring.diagnosis.enums import Measure
from monitoring.golive.plan import Plan, Promise, plan_run
from panel.core.errors import InvalidInput

STEP_SECONDS: Final = 20.0
MOST_STEPS: Final = 9  # 1, 2, 4, … 256
_Ms = Annotated[float, Meta(gt=0, le=600_000)]
_Length = Annotated[int, Meta(ge=1, le=131_072)]


class Asked(Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One test. Promises: p95_ms, p99_ms of `measure` (either may be null), error_rate; ttft_ms, tpot_ms, e2e_ms are for goodput.

    peak_per_second: of all places together, open loop. lengths: tokens of prompts at the median, the 95th percentile and the
    maximum; max_tokens: of answers. seconds: measured at least. spare: how many over the highest percentile the number of
    requests allows. has_steps: 1, 2, 4, … at once afterwards, up to most_concurrency. most_*: it is refused when its plan is over
    one of them; most_cost: of the cards meanwhile, in currency.
    """

    peak_per_second: Annotated[float, Meta(gt=0, le=1_000)]
    p95_ms: _Ms | None = 500.0
    p99_ms: _Ms | None = 1_000.0
    measure: Literal["ttft", "total", "e2e"] = "ttft"
    error_rate: Annotated[float, Meta(gt=0, lt=1)] = 0.01
    ttft_ms: _Ms | None = None
    tpot_ms: _Ms | None = None
    e2e_ms: _Ms | None = None
    lengths: tuple[_Length, _Length, _Length] = (128, 512, 2_048)
    max_tokens: Annotated[int, Meta(ge=1, le=8_192)] = 64
    seconds: Annotated[float, Meta(ge=1, le=21_600)] = 600.0
    spare: Annotated[int, Meta(ge=0, le=50)] = 0
    timeout_seconds: Annotated[float, Meta(gt=0, le=600)] = 60.0
    has_steps: bool = True
    most_concurrency: Annotated[int, Meta(ge=1, le=MOST_CONCURRENCY)] = 64
    most_seconds: Annotated[float, Meta(gt=0, le=28_000)] = 3_600.0
    most_requests: Annotated[int, Meta(ge=1, le=100_000)] = 20_000
    most_tokens: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 10_000_000
    most_cost: Annotated[str, Meta(max_length=20)] = ""
    currency: Annotated[str, Meta(max_length=3)] = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a test will take at most. steps_seconds: of the steps of concurrency, within seconds."""

    requests: int
    tokens: int
    seconds: float
    steps_seconds: float
    step_tokens: int

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "requests": self.requests,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 1),
            "steps_seconds": round(self.steps_seconds, 1),
            "step_tokens": self.step_tokens,
        }


def asked_read(given: Mapping[str, Any]) -> Asked:
    """Return what was asked. Raises InvalidInput that says what to change."""
    try:
        asked = msgspec.convert(dict(given), Asked)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(_("This cannot be tested: %(error)s") % {"error": error}) from None
    if asked.p95_ms is None and asked.p99_ms is None:
        raise InvalidInput(_("Promise P95 or P99: a test proves one of them at least."), field="p95_ms")
    if list(asked.lengths) != sorted(asked.lengths):
        raise InvalidInput(_("Prompt lengths go up: median, 95th percentile, longest."), field="lengths")
    return asked


def gate_read(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what a gate asks for as it is stored, without steps unless it asks for them; None for none. Raises InvalidInput."""
    if given is None:
        return None
    found: dict[str, Any] = msgspec.to_builtins(asked_read({"has_steps": False, **given}))
    return {"has_steps": False, **found}


def promise_of(asked: Asked) -> Promise:
    """Return what is to be proven."""
    given = {0.95: asked.p95_ms, 0.99: asked.p99_ms}
    return Promise(
        thresholds_ms={q: ms for q, ms in given.items() if ms is not None},
        measure=Measure(asked.measure),
        error_rate=asked.error_rate,
        ttft_ms=asked.ttft_ms,
        tpot_ms=asked.tpot_ms,
        e2e_ms=asked.e2e_ms,
    )


def plans_of(asked: Asked, *, shares: Sequence[float], seed: int, time_scale: float = 1.0) -> list[Plan]:
    """Return the plan of each place. shares: of the peak, which add up to 1. Raises InvalidInput with what to change."""
    try:
        return [
            plan_run(
                promise_of(asked),
                peak_per_second=asked.peak_per_second * share,
                lengths=asked.lengths,
                seed=seed + number,
                spare=asked.spare,
                seconds=asked.seconds,
                time_scale=time_scale,
            )
            for number, share in enumerate(shares)
        ]
    except ValueError as error:
        raise InvalidInput(str(error), field="peak_per_second") from None


def estimate_of(asked: Asked, plans: Sequence[Plan]) -> Estimate:
    """Return what plans take at most: prompts as planned, answers as long as they may be."""
    requests = sum(len(plan.arrivals) for plan in plans)
    tokens = sum(arrival.tokens for plan in plans for arrival in plan.arrivals) + requests * asked.max_tokens
    steps = 0
    while asked.has_steps and steps < MOST_STEPS and 2**steps <= asked.most_concurrency:
        steps += 1
    scale = plans[0].time_scale if plans else 1.0
    steps_seconds = steps * STEP_SECONDS * scale
    seconds = max((plan.seconds for plan in plans), default=0.0) + asked.timeout_seconds + steps_seconds
    # Steps have no plan: an answer in no less than 20 ms each is far more than they will send.
    most_in_steps = sum(2**step for step in range(steps)) * STEP_SECONDS * scale / 0.02 if steps else 0.0
    step_tokens = round(min(most_in_steps * (asked.lengths[0] + asked.max_tokens), max(asked.most_tokens - tokens, 0)))
    return Estimate(requests, tokens, seconds, steps_seconds, step_tokens)


def check_caps(asked: Asked, estimate: Estimate, cost: Mapping[str, Decimal], *, is_cost_known: bool) -> None:
    """Raises InvalidInput that names the cap which the plan is over, and by how much. cost: of its time, by currency."""
    caps: tuple[tuple[str, float, float, str], ...] = (
        ("most_seconds", estimate.seconds, asked.most_seconds, _("It would take %(need)s s, and %(most)s s are allowed.")),
        ("most_requests", estimate.requests, asked.most_requests, _("It would send %(need)s requests, %(most)s are allowed.")),
        ("most_tokens", estimate.tokens, asked.most_tokens, _("It would take up to %(need)s tokens, and %(most)s are allowed.")),
    )  # fmt: skip
    for name, need, most, sentence in caps:
        if need > most:
            words = {"need": f"{need:,.0f}", "most": f"{most:,.0f}"}
            raise InvalidInput(sentence % words, field=name)
    if asked.most_cost:
        _check_cost(asked, cost, is_cost_known=is_cost_known)


def _check_cost(asked: Asked, cost: Mapping[str, Decimal], *, is_cost_known: bool) -> None:
    try:
        most = Decimal(asked.most_cost)
    except ArithmeticError:
        raise InvalidInput(_("The highest cost is a number."), field="most_cost") from None
    if not is_cost_known or set(cost) - {asked.currency}:
        raise InvalidInput(
            _("What its cards cost in %(currency)s is not known, so that this cap cannot be kept: leave it out.")
            % {"currency": asked.currency or "?"},
            field="most_cost",
        )
    need = cost.get(asked.currency, Decimal(0))
    if need > most:
        words = {"need": f"{need:.2f}", "most": f"{most:.2f}", "currency": asked.currency}
        raise InvalidInput(
            _("Its cards cost %(need)s %(currency)s meanwhile, and %(most)s are allowed.") % words, field="most_cost"
        )
