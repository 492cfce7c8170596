"""How an engine is, for people: the word that its agent's rules give, a sentence, the next step, and whether to offer a restart.

The word itself comes from `fleet.agent.engines.health`, the one place with those rules; here is what a page says of it.
"""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from msgspec import Struct

from fleet.agent.engines.health import SERVING, Evidence, Word, word_for

# Engines whose metrics are off unless asked for, and what turns them on.
METRICS_SWITCH: Final[Mapping[str, str]] = {
    "sglang": "--enable-metrics",
    "llamacpp": "--metrics",
    "trtllm": "return_perf_metrics: true",
}
_SAY: Final[Mapping[Word, Promise]] = {
    "": gettext_lazy("Nothing is known yet."),
    "ok": gettext_lazy("It answers requests."),
    "degraded": gettext_lazy("It answers, but slowly, or it calls itself ill."),
    "saturated": gettext_lazy("It is full: requests wait, and it works on."),
    "stalled": gettext_lazy("Requests are there and no token comes out."),
    "asleep": gettext_lazy("It gave its memory back and wakes with a request."),
    "down": gettext_lazy("It does not run or refuses connections."),
}
_NEXT: Final[Mapping[Word, Promise]] = {
    "degraded": gettext_lazy("Look at its log and at the card's clocks and temperature."),
    "saturated": gettext_lazy("Add a replica, or let fewer requests in; a restart would only make it worse."),
    "stalled": gettext_lazy("It takes no requests now. Restart it, and keep its log for the engine's makers."),
    "down": gettext_lazy("Its agent starts it again by itself; the log says why it ended."),
}


class Observation(Struct, frozen=True, kw_only=True):
    """What was seen of one engine. evidence: as the agent gathers it, of requests, counters and the process.

    up_seconds: since the process began. last_log_seconds: age of its last log line, None when it wrote none. metrics_status: HTTP
    status of the metrics page, 0 when it did not answer, None when it was not asked. health_text: what its health page said.
    """

    evidence: Evidence
    kind: str = "custom"
    up_seconds: float = 0.0
    start_limit_seconds: float = 1800.0
    last_log_seconds: float | None = None
    metrics_status: int | None = None
    health_text: str = ""


class Judgement(Struct, frozen=True, kw_only=True):
    """What a page shows. offers_restart: whether a restart is the first thing to offer. notes: sentences beside the word."""

    word: Word
    takes_requests: bool
    sentence: str
    next_step: str
    offers_restart: bool
    notes: list[str]


def judge(seen: Observation) -> Judgement:
    """Return the word with what to say of it. Pure."""
    word = word_for(seen.evidence)
    sentence, step = (_starting(seen), "") if word == "starting" else (str(_SAY[word]), str(_NEXT.get(word, "")))
    is_late = word == "starting" and seen.up_seconds >= seen.start_limit_seconds
    if is_late:
        step = _("It is given up: look at its log, or raise the start limit when the model is just large.")
    return Judgement(
        word="down" if is_late else word,
        takes_requests=word in SERVING,
        sentence=sentence,
        next_step=step,
        offers_restart=is_late or word == "stalled",
        notes=_notes(seen, word),
    )


def _starting(seen: Observation) -> str:
    facts = {"up": _span(seen.up_seconds), "limit": _span(seen.start_limit_seconds)}
    said = _("It loads for %(up)s now, of %(limit)s that it may take.") % facts
    if seen.last_log_seconds is None:
        return said
    return f"{said} " + _("Its last log line is %(age)s old.") % {"age": _span(seen.last_log_seconds)}


def _notes(seen: Observation, word: Word) -> list[str]:
    notes = []
    if seen.metrics_status == 404:
        switch = METRICS_SWITCH.get(seen.kind)
        notes.append(
            _("Its metrics are off: start it with %(switch)s.") % {"switch": switch}
            if switch
            else _("It has no metrics page: queue and cache stay unknown.")
        )
    if word == "stalled" and seen.evidence.health_status == 200:
        notes.append(_("Its own health page says it is well (%(text)s).") % {"text": seen.health_text[:100] or "200"})
    if word == "saturated" and seen.evidence.health_status is not None and seen.evidence.health_status != 200:
        notes.append(_("Its health page does not answer well because it is busy; its counters move."))
    return notes


def _span(seconds: float) -> str:
    """Write a span as minutes and seconds."""
    whole = max(int(seconds), 0)
    return _("%(minutes)d min %(seconds)d s") % {"minutes": whole // 60, "seconds": whole % 60}
