"""How an engine is, in one word, from what was seen of it. Pure: no clock, no network.

The rules, and what they guard against:

- `/health` that is 200 proves nothing: an engine can answer it for hours and generate nothing. Only answered requests and
  moving counters count; its own page can only add that it is `degraded`.
- An engine whose requests wait and whose counters have not moved for a minute is `stalled`, as is an idle one that twice left
  the real request unanswered beyond its timeout.
- An engine that is slow or refuses because it is full, while its counters move, is `saturated`: busy is not ill.
- Nobody hurries an engine that has never answered: until the first answer it is `starting`, whatever it says.
"""

from dataclasses import dataclass
from typing import Final, Literal

Word = Literal["", "starting", "ok", "degraded", "saturated", "stalled", "asleep", "down"]
Outcome = Literal["answered", "unanswered", "refused", "error", "full"]

# Words with which a replica takes requests.
SERVING: Final = frozenset({"ok", "degraded", "saturated", "asleep"})
STALL_SECONDS: Final = 60.0
MISSES: Final = 2
FULL_CACHE_PERCENT: Final = 98.0
SLOW_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of one engine.

    is_frozen: its process is stopped (SIGSTOP, paused container). has_answered: the real request was ever answered. outcome: of
    the last one: `unanswered` within its timeout, `refused` connection, `error` (an answer that is none), `full` (429).
    misses: how many in a row were not answered. answered_ms, timeout_seconds: of the real request. is_moving: the progress
    counter grew while the last request was out (or since the last look); None when it cannot be told. frozen_seconds: for how
    long it has not grown although requests were there. others: requests in the engine that are not our own unanswered ones, None
    when unknown. health_status: of its health page, 0 when that did not answer, None when it was not asked.
    """

    is_running: bool = True
    is_frozen: bool = False
    has_answered: bool = False
    outcome: Outcome | None = None
    misses: int = 0
    answered_ms: float | None = None
    timeout_seconds: float = 10.0
    waiting: float | None = None
    kv_cache_percent: float | None = None
    is_asleep: bool = False
    is_moving: bool | None = None
    frozen_seconds: float = 0.0
    others: float | None = None
    health_status: int | None = None


def word_for(seen: Evidence) -> Word:
    """Return the word. A replica takes requests with those in SERVING."""
    if not seen.is_running:
        return "down"
    if not seen.has_answered:
        return "starting"
    if seen.is_frozen or seen.frozen_seconds >= STALL_SECONDS:
        return "stalled"
    if seen.is_asleep and seen.outcome != "refused":
        return "asleep"
    return _word_of_an_answering(seen) if seen.misses == 0 else _word_of_a_silent(seen)


def _word_of_an_answering(seen: Evidence) -> Word:
    if (seen.waiting or 0.0) > 0.0 or (seen.kv_cache_percent or 0.0) >= FULL_CACHE_PERCENT:
        return "saturated"
    is_ill = seen.health_status is not None and not 200 <= seen.health_status < 300
    is_slow = (seen.answered_ms or 0.0) > seen.timeout_seconds * 1000.0 * SLOW_SHARE
    return "degraded" if is_ill or is_slow else "ok"


def _word_of_a_silent(seen: Evidence) -> Word:
    """Return the word for an engine that did not answer the last real request."""
    if seen.outcome == "refused":
        return "down"
    has_work = seen.others is not None and seen.others > 0.0
    # One with work that does not move is given until `frozen_seconds` says otherwise.
    if seen.is_moving or seen.outcome == "full" or (seen.outcome == "unanswered" and has_work):
        return "saturated"
    if seen.misses < MISSES:
        return "degraded"
    return "stalled" if seen.outcome == "unanswered" else "down"
