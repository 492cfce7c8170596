"""The words of the pages of diagnoses."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring.diagnosing.enums import ReportFailure
from monitoring.diagnosis.enums import Verdict

STEPS: Final[Mapping[str, Promise]] = {
    "waiting": _("Waiting for the places to begin"),
    "rounds": _("Paired rounds: outside and on the host"),
    "lengths": _("Prompts of growing length, one at a time"),
    "concurrency": _("More and more requests at once"),
}
NEXT: Final[Mapping[str, Promise]] = {
    ReportFailure.NO_PROBER: _("Look at Self-health: the process “prober” has to run. Then begin again."),
    ReportFailure.NO_OUTSIDE: _(
        "Look at the servers outside: are their agents heard, and may they probe? Then begin again."
    ),
    ReportFailure.NO_HOST: _("Look at the engine’s server: is its agent heard, is a job under way? Then begin again."),
    ReportFailure.NOT_JUDGED: _("Begin again; when it happens twice, tell those who keep this panel."),
}
TONES: Final[Mapping[Verdict, str]] = {
    Verdict.HEALTHY: "ok",
    Verdict.AVAILABILITY: "critical",
    Verdict.NOT_ENOUGH_DATA: "unknown",
    Verdict.VANTAGE_BAD: "unknown",
}
METRICS: Final[Mapping[str, Promise]] = {
    "e2e": _("whole request"),
    "ttft": _("first token"),
    "ttfb": _("first byte"),
}
STOPS: Final[Mapping[str, Promise]] = {
    "seconds": _("ended at its time limit"),
    "requests": _("ended at its number of requests"),
    "tokens": _("ended at its number of tokens"),
    "errors": _("ended because requests failed"),
}
# Phases in the order of a request; each with the name of its field in a result.
PHASES: Final[tuple[tuple[str, Promise], ...]] = (
    ("dns_ms", _("Name")),
    ("tcp_ms", _("Connection")),
    ("tls_ms", _("TLS")),
    ("wait_ms", _("Wait for the first byte")),
    ("ttft_ms", _("First token, from the start")),
    ("transfer_ms", _("Body")),
    ("e2e_ms", _("Whole request")),
)


def tone_of(verdict: str) -> str:
    """Return the tone of a verdict; causes are warnings: something can be done about them."""
    return TONES.get(Verdict(verdict), "warning") if verdict else "unknown"
