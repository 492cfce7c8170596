"""What a place is told to send in a go-live test, and what it tells of it, piece by piece. Shared with the panel."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from fleet.agent.probes.target import Target

LOAD_PATH: Final = "/api/agent/v1/load/"
MOST_ARRIVALS: Final = 100_000
MOST_TARGETS: Final = 64
MOST_SHOTS: Final = 2_000  # of one piece
MOST_CONCURRENCY: Final = 256

Phase = Literal["warm_up", "measured", "steps", "over"]
Stop = Literal["", "seconds", "tokens", "told", "lost"]


class LoadOrder(Struct, omit_defaults=True, kw_only=True):
    """One place's part of a test.

    part: its id at the panel. targets: asked in turn. at_seconds, tokens: when each request is due after the beginning, and how
    long its prompt is; the first `warm_up` of them are not measured. step_seconds: how long a step of concurrency lasts, 0 for
    none. in_flight_most: what is due while so many are under way counts as failed: nobody would be waited for any longer.
    most_seconds, most_tokens (of prompts and answers): where it ends whatever happens.
    """

    part: int
    targets: Annotated[list[Target], Meta(min_length=1, max_length=MOST_TARGETS)]
    at_seconds: Annotated[list[float], Meta(max_length=MOST_ARRIVALS)]
    tokens: Annotated[list[int], Meta(max_length=MOST_ARRIVALS)]
    warm_up: int
    step_seconds: float = 0.0
    in_flight_most: Annotated[int, Meta(ge=1, le=5_000)] = 512
    most_seconds: float = 7_200.0
    most_tokens: int = 10_000_000


class Shot(Struct, array_like=True):
    """One request. number: of its arrival, of a step its own count. step: the concurrency of a step, 0 for a planned arrival.

    at_seconds: when it was really sent, after the beginning. in_flight: with it. Times in ms from then, null where they did not
    happen. outcome: as of a probe, or `in_flight_limit`. tokens: prompt and answer, as the engine counts or as asked.
    """

    number: int
    step: int
    at_seconds: float
    is_ok: bool
    in_flight: int
    total_ms: float | None = None
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    tpot_ms: float | None = None
    tokens: int = 0
    outcome: Annotated[str, Meta(max_length=24)] = ""
    detail: Annotated[str, Meta(max_length=120)] = ""


class LoadPiece(Struct, omit_defaults=True, kw_only=True):
    """What happened since the piece before. sequence: from 0; one that is told again changes nothing.

    seconds: since the beginning. step: the concurrency that is under way, or has just ended (is_step_over). loop_lag_p99_ms: of
    the sending process, the worst minute of the measured time so far. stopped: why it ended before its plan was done.
    """

    part: int
    sequence: Annotated[int, Meta(ge=0, le=1_000_000)]
    phase: Phase
    seconds: float
    shots: Annotated[list[Shot], Meta(max_length=MOST_SHOTS)] = []
    step: int = 0
    is_step_over: bool = False
    loop_lag_p99_ms: float | None = None
    stopped: Stop = ""
    agent_version: Annotated[str, Meta(max_length=32)] = ""


class LoadAnswer(Struct, omit_defaults=True):
    """What the panel says to a piece. go_on: false ends the load at once. concurrency: of the next step; 0: there is none."""

    go_on: bool = True
    concurrency: int = 0


class LoadDone(Struct, omit_defaults=True):
    """The result of the agent's job: what was sent has been told in pieces by then."""

    sent: int = 0
    stopped: Annotated[str, Meta(max_length=16)] = ""
