"""How far a machine has come in joining: four steps, each with what usually goes wrong and the fix. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.advice import driver_advice
from fleet.enums import DriverState
from frontend.formatting import duration

# After this long without the next step, the usual failure is shown beside it.
PATIENCE_SECONDS: Final = {"token": 120, "facts": 30, "sample": 30}
SKEW_SECONDS: Final = 30.0

StepState = Literal["done", "current", "waiting", "warning", "critical"]
TONES: Final[Mapping[StepState, str]] = {
    "done": "ok",
    "current": "progress",
    "waiting": "todo",
    "warning": "warning",
    "critical": "critical",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One tick. at: when it was reached. detail: what is so. hint: the usual failure and its fix."""

    code: str
    title: str
    state: StepState
    at: datetime | None = None
    detail: str = ""
    hint: str = ""

    @property
    def tone(self) -> str:
        """Return the mark's tone."""
        return TONES[self.state]


@dataclass(frozen=True, slots=True)
class Progress:
    """All ticks. is_over: nothing more will come by itself. ended: why no machine can join with this token any more."""

    steps: list[Step]
    is_over: bool
    is_joined: bool
    ended: str = ""


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _waited(since: datetime | None, now: datetime, code: str) -> bool:
    return since is not None and (now - since).total_seconds() > PATIENCE_SECONDS[code]


def _ended(facts: Mapping[str, Any], now: datetime) -> str:
    if facts["token_used_at"] is not None:
        return ""
    if facts["revoked_at"] is not None:
        return _("This join token was taken back. Make a new one.")
    expires = _time(facts["expires_at"])
    if expires is not None and expires <= now:
        return _("This join token has expired. Make a new one.")
    return ""


def _token_step(facts: Mapping[str, Any], created_at: datetime, now: datetime) -> Step:
    used = _time(facts["token_used_at"])
    if used is not None:
        return Step("token", _("Token used"), "done", at=used)
    hint = ""
    if _waited(created_at, now, "token"):
        hint = _(
            "Not run yet, or the machine does not reach this panel: try the panel's address from it with curl."
            " Behind a proxy set https_proxy first."
        )
    return Step("token", _("Token used"), "current", detail=_("Run the line on the machine."), hint=hint)


def _skew(facts: Mapping[str, Any]) -> str:
    skew = facts["clock_skew_seconds"]
    if skew is None or abs(skew) < SKEW_SECONDS:
        return ""
    words = {"skew": duration(skew)}
    sentence = (
        _("The machine's clock is %(skew)s ahead.") if skew > 0 else _("The machine's clock is %(skew)s behind.")
    ) % words
    return sentence + " " + _("Its samples are kept at the panel's time; set up NTP there.")


def _facts_step(facts: Mapping[str, Any], now: datetime) -> Step:
    title, used, at = _("Host facts"), _time(facts["token_used_at"]), _time(facts["facts_at"])
    if at is not None:
        skew = _skew(facts)
        return Step("facts", title, "warning" if skew else "done", at=at, hint=skew)
    if used is None:
        return Step("facts", title, "waiting")
    hint = ""
    if _waited(used, now, "facts"):
        hint = _(
            "The agent has joined and cannot report. A proxy may stop large or compressed requests;"
            " the agent's log on the machine says more."
        )
    return Step("facts", title, "current", detail=_("The agent is starting."), hint=hint)


def _sample_step(facts: Mapping[str, Any], now: datetime) -> Step:
    title, since, at = _("First sample"), _time(facts["facts_at"]), _time(facts["first_sample_at"])
    if at is not None:
        return Step("sample", title, "done", at=at)
    if since is None:
        return Step("sample", title, "waiting")
    hint = ""
    if _waited(since, now, "sample"):
        hint = _("Reports arrive without readings. The agent's log on the machine says why.")
    return Step("sample", title, "current", hint=hint)


def _gpu_step(facts: Mapping[str, Any]) -> Step:
    title, count = _("GPUs found"), facts["gpu_count"]
    if facts["first_sample_at"] is None or count is None:
        return Step("gpus", title, "waiting")
    found = ngettext("%(count)d GPU found", "%(count)d GPUs found", count) % {"count": count}
    state = facts["driver_state"]
    if state == DriverState.UNKNOWN:
        return Step("gpus", title, "current", detail=_("The agent is asking the driver."))
    advice = driver_advice(state)
    if count and state == DriverState.OK:
        return Step("gpus", found, "done")
    detail = str(advice.sentence)
    if facts["driver_detail"]:
        detail = f"{detail} ({facts['driver_detail']})"
    hint = str(advice.next_step)
    if not count and state == DriverState.OK:
        detail = _("The NVIDIA driver answers and shows no card.")
        hint = _("In a container, start it with --gpus all. On a machine without a GPU there is nothing to do.")
    return Step("gpus", found, "critical" if advice.severity == "critical" else "warning", detail=detail, hint=hint)


def join_progress(facts: Mapping[str, Any], *, created_at: datetime, now: datetime) -> Progress:
    """Return the ticks. facts: fleet.selectors.join_live of the token."""
    steps = [_token_step(facts, created_at, now), _facts_step(facts, now), _sample_step(facts, now), _gpu_step(facts)]
    ended = _ended(facts, now)
    if ended:
        steps[0] = Step("token", _("Token used"), "critical", detail=ended)
    is_joined = steps[-1].state in {"done", "warning", "critical"}
    return Progress(steps, is_over=bool(ended) or steps[-1].state == "done", is_joined=is_joined, ended=ended)
