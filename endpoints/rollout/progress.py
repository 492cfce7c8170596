"""How far a replica has come from its order to its first request, in ten steps. Pure.

Some steps are told by the panel and the agent (placed, pulling, ready), the others by lines that engines write to their log;
those lines carry the time at which the agent sent them, so they are some seconds late at most. A step that nobody told of and
that a later one proves to be over is `passed`: it happened, and how long it took is not known.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final


class Step(StrEnum):
    """What happens one after the other."""

    REQUESTED = "requested"
    CAPACITY = "capacity"
    MACHINE = "machine"
    IMAGE = "image"
    WEIGHTS = "weights"
    LOADED = "loaded"
    WARM_UP = "warm_up"
    FIRST_200 = "first_200"
    FIRST_TOKEN = "first_token"  # noqa: S105  # of a model's answer
    ROTATION = "rotation"


class StepState(StrEnum):
    """How a step stands."""

    DONE = "done"
    PASSED = "passed"
    SKIPPED = "skipped"
    CURRENT = "current"
    FAILED = "failed"
    WAITING = "waiting"


ORDER: Final = tuple(Step)

# What engines write when a step is over: vLLM, SGLang, TGI, llama.cpp, Triton, and what their common libraries write.
_SAID: Final[Sequence[tuple[Step, re.Pattern[str]]]] = tuple(
    (step, re.compile(pattern, re.IGNORECASE))
    for step, pattern in (
        (
            Step.WEIGHTS,
            (
                r"time spent downloading weights|fetching \d+ files: +100%|successfully downloaded weights"
                r"|files are already present|starting to load model|load weight begin|downloading model.*100%"
            ),
        ),
        (
            Step.LOADED,
            (
                r"model loading took|loading weights took|load weight end|loading checkpoint shards: +100%|model weights loaded"
                r"|successfully loaded '|shard ready in|main: model loaded|\bmodel loaded\b"
            ),
        ),
        (
            Step.WARM_UP,
            r"graph capturing finished|init engine .* took|capture cuda graph end|warmup took|warm-?up (is )?(done|complete)",
        ),
        (
            Step.FIRST_200,
            (
                r"application startup complete|uvicorn running on|fired up and ready|server is listening on"
                r"|started httpservice|listening at http"
            ),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of one start of a replica.

    states: when its agent first told of each state (`placed`, `pulling`, `starting`, `ready`, …). marks: of the log, see
    `marks_in`. is_container: an image is pulled. routed_at: when gateways began to send requests. failed_at: given up then.
    """

    requested_at: datetime
    states: Mapping[str, datetime]
    marks: Mapping[Step, datetime]
    is_container: bool = True
    has_weights: bool = True
    routed_at: datetime | None = None
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """One step. seconds: how long it took, or has taken until now; None when nobody can tell."""

    step: Step
    state: StepState
    began_at: datetime | None = None
    ended_at: datetime | None = None
    seconds: float | None = None


def marks_in(lines: Iterable[tuple[datetime, str]]) -> dict[Step, datetime]:
    """Return when the log first said that a step is over."""
    found: dict[Step, datetime] = {}
    for at, line in lines:
        for step, pattern in _SAID:
            if step not in found and pattern.search(line):
                found[step] = at
    return found


def _ends(told: Told) -> dict[Step, datetime | None]:
    """Return when each step was over, as far as anybody told."""
    states = told.states
    begun = [states[name] for name in ("pulling", "starting", "not_ready", "ready") if name in states]
    seen = [*begun, *([states["pending"]] if "pending" in states else [])]
    return {
        Step.REQUESTED: told.requested_at,
        Step.CAPACITY: states.get("placed"),
        Step.MACHINE: min(seen) if seen else None,
        Step.IMAGE: states.get("starting"),
        Step.WEIGHTS: told.marks.get(Step.WEIGHTS),
        Step.LOADED: told.marks.get(Step.LOADED),
        Step.WARM_UP: told.marks.get(Step.WARM_UP),
        Step.FIRST_200: told.marks.get(Step.FIRST_200),
        Step.FIRST_TOKEN: states.get("ready"),
        Step.ROTATION: told.routed_at,
    }


def progress(told: Told, *, now: datetime) -> list[Progress]:
    """Return the ten steps in their order, with how long each took."""
    ends = _ends(told)
    skipped = {Step.IMAGE} if not told.is_container else set()
    if not told.has_weights:
        skipped.add(Step.WEIGHTS)
    last = max((ORDER.index(step) for step, at in ends.items() if at is not None), default=0)
    rows: list[Progress] = []
    reached: datetime | None = None
    is_open = False
    for index, step in enumerate(ORDER):
        at = ends[step]
        if step in skipped:
            rows.append(Progress(step, StepState.SKIPPED))
        elif at is not None:
            began = reached if reached is not None else at
            rows.append(Progress(step, StepState.DONE, began, at, max((at - began).total_seconds(), 0.0)))
            reached = max(at, reached) if reached is not None else at
        elif index < last:
            rows.append(Progress(step, StepState.PASSED))
        elif is_open:
            rows.append(Progress(step, StepState.WAITING))
        else:
            rows.append(_open(step, told, reached, now))
            is_open = True
    return rows


def _open(step: Step, told: Told, reached: datetime | None, now: datetime) -> Progress:
    """Return the step that is under way, or at which it was given up."""
    is_over = told.failed_at is not None
    until = told.failed_at or now
    seconds = max((until - reached).total_seconds(), 0.0) if reached is not None else None
    return Progress(step, StepState.FAILED if is_over else StepState.CURRENT, reached, told.failed_at, seconds)


def done_count(rows: Sequence[Progress]) -> int:
    """Return how many of the steps are over."""
    return sum(row.state in {StepState.DONE, StepState.PASSED, StepState.SKIPPED} for row in rows)
