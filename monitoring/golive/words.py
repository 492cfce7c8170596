"""What a go-live test says to people. In the language in force."""

import math
from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.golive.enums import Flaw, Outcome, Stop
from monitoring.golive.judge import Errors, Judgement, Proof

OUTCOMES: Final[Mapping[Outcome, str | Promise]] = {
    Outcome.PASS: gettext_lazy("passed"),
    Outcome.FAIL: gettext_lazy("failed"),
    Outcome.NOT_PROVEN: gettext_lazy("not proven"),
    Outcome.INVALID: gettext_lazy("invalid test"),
}
FLAWS: Final[Mapping[Flaw, str | Promise]] = {
    Flaw.ARRIVALS_TOO_SLOW: gettext_lazy("Fewer than 95 of 100 requests were sent in time: send from another machine."),
    Flaw.LOOP_LAG: gettext_lazy(
        "The process that sent was busy itself (20 ms late or more): take load off its machine."
    ),
    Flaw.LOOP_LAG_UNKNOWN: gettext_lazy("How busy the sending process was is not known: its agent has to be updated."),
    Flaw.WARM_UP_TOO_SHORT: gettext_lazy("The warm-up did not take place: 30 s and five answered requests at least."),
    Flaw.VANTAGE_BAD: gettext_lazy("The control target was slow as well: the place that measures was not well."),
    Flaw.STOPPED: gettext_lazy("The load ended before its plan was done: at a limit, or its place was lost."),
    Flaw.CHANGED: gettext_lazy("Revision, replicas or machine changed during the test: run it again."),
}
STOPS: Final[Mapping[Stop, str | Promise]] = {
    Stop.OVERSATURATED: gettext_lazy("The queue only grew: the endpoint takes no more."),
    Stop.ERRORS: gettext_lazy("More than one request in twenty failed."),
    Stop.PLATEAU: gettext_lazy("Twice the requests gained less than 10 % throughput."),
    Stop.MOST: gettext_lazy("The largest step was reached."),
}


def outcome_name(outcome: Outcome) -> str:
    """Return an outcome in a word or two."""
    return str(OUTCOMES[outcome])


def reasons(found: Judgement) -> list[str]:
    """Return why the outcome is what it is, one sentence each: what made the test invalid, else each promise."""
    if found.flaws:
        return [str(FLAWS[flaw]) for flaw in found.flaws]
    return [*(proof_sentence(proof) for proof in found.proofs), errors_sentence(found.errors)]


def proof_sentence(proof: Proof) -> str:
    """Return what was proven of one percentile."""
    values = {
        "name": f"P{proof.q * 100:g}",
        "limit": f"{proof.threshold_ms:g}",
        "n": proof.n,
        "over": proof.over,
        "allowed": proof.allowed,
        "wanted": proof.suggested_n,
    }
    if proof.outcome is Outcome.PASS:
        return (
            _("%(name)s is within %(limit)s ms: %(over)s of %(n)s requests were over it, %(allowed)s may be.") % values
        )
    if proof.outcome is Outcome.FAIL:
        value = proof.percentile.value_ms
        if value is None or math.isinf(value):
            return _("%(name)s has no end: %(over)s of %(n)s requests failed or were over %(limit)s ms.") % values
        return _("%(name)s is %(value)s ms and has to be within %(limit)s ms.") % (values | {"value": f"{value:.0f}"})
    if proof.suggested_n is None:
        return (
            _("%(name)s was within %(limit)s ms, but too close to prove it: %(over)s of %(n)s requests were over it.")
            % values
        )
    return (
        _(
            "%(name)s was within %(limit)s ms, which is not proven: %(over)s of %(n)s requests were over, %(allowed)s may be. "
            "Plan a new run with %(wanted)s requests."
        )
        % values
    )


def errors_sentence(errors: Errors) -> str:
    """Return what was proven of failures."""
    values = {
        "count": errors.count,
        "n": errors.n,
        "bound": f"{errors.upper_bound * 100:.2g}",
        "limit": f"{errors.limit * 100:g}",
    }
    if errors.outcome is Outcome.PASS:
        return (
            _("%(count)s of %(n)s requests failed: the error rate is %(bound)s %% at most, %(limit)s %% may be.")
            % values
        )
    if errors.outcome is Outcome.FAIL:
        return _("%(count)s of %(n)s requests failed: more than the %(limit)s %% that may be.") % values
    return (
        _(
            "%(count)s of %(n)s requests failed: the error rate may be up to %(bound)s %%, not proven to be %(limit)s %%."
        )
        % values
    )
