"""Words of go-live tests beside those of the verdict: phases, places that were lost, flaws of a run."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from frontend.words import job_reason_words

PHASES: Final[Mapping[str, Promise]] = {
    "": gettext_lazy("Waiting to begin"),
    "warm_up": gettext_lazy("Warm-up"),
    "measured": gettext_lazy("Measured load"),
    "steps": gettext_lazy("Steps to saturation"),
    "over": gettext_lazy("Done"),
}
LOST: Final[Mapping[str, Promise]] = {
    "deadline": gettext_lazy("It did not end in time."),
    "silent": gettext_lazy("It fell silent in the middle."),
    "no_prober": gettext_lazy("No prober of the panel runs: start one with `manage.py prober`."),
}
STOPPED: Final[Mapping[str, Promise]] = {
    "seconds": gettext_lazy("It ended at the longest time allowed."),
    "tokens": gettext_lazy("It ended at the most tokens allowed."),
    "told": gettext_lazy("It was called off."),
    "lost": gettext_lazy("It could not reach the panel any more."),
}
MEASURES: Final[Mapping[str, Promise]] = {
    "ttft": gettext_lazy("First token (TTFT)"),
    "total": gettext_lazy("Whole time"),
    "e2e": gettext_lazy("To the last token"),
}
TONES: Final[Mapping[str, str]] = {"pass": "ok", "fail": "critical", "not_proven": "warning", "invalid": "unknown"}


def lost_words(detail: str) -> str:
    """Return why a place was not waited for any longer."""
    if detail in LOST:
        return str(LOST[detail])
    reason, _colon, rest = detail.partition(": ")
    return ": ".join(part for part in (job_reason_words(reason) or reason, rest) if part)


def run_tone(state: str, outcome: str) -> str:
    """Return the mark of a run."""
    if outcome:
        return TONES.get(outcome, "unknown")
    return "silenced" if state == "cancelled" else "progress"


def place_word(server_id: int, names: Mapping[int, str]) -> str:
    """Return a place's name."""
    return names.get(server_id) or _("server %(id)s (removed)") % {"id": server_id}
