"""What would change a verdict: the observations next to which it would turn, with where they are now."""

from monitoring.diagnosis.cards import LEAST_SHARE as LEAST_THROTTLED
from monitoring.diagnosis.enums import Limit, Side, Verdict
from monitoring.diagnosis.evidence import Objective
from monitoring.diagnosis.figures import Figures
from monitoring.diagnosis.host import IDLE_SM, MOST, Case
from monitoring.diagnosis.network import LOSS_SHARE
from monitoring.diagnosis.report import Change, ChangeKind
from monitoring.diagnosis.split import HOST_SHARE, UNSURE_SHARE, Decision


def changes_of(decision: Decision, case: Case, objective: Objective) -> tuple[Change, ...]:
    """Return them for a decision that came out of figures: of its side first, then of its cause."""
    threshold = objective.threshold_ms
    causes = decision.also if decision.verdict is Verdict.MIXED else (decision.verdict,)
    found = _of_side(decision, case.figures, threshold)
    for verdict in causes:
        found += [change for change in (_of_route(verdict, case.figures, threshold), _of_work(verdict, case)) if change]
    if decision.limits & {Limit.NO_SWEEP, Limit.NO_LENGTHS, Limit.NO_PLATEAU, Limit.LITTLE_DISAGREES}:
        found.append(Change(ChangeKind.SWEEPS))
    return tuple(found)


def _of_side(decision: Decision, figures: Figures, threshold: float) -> list[Change]:
    if decision.verdict is Verdict.HEALTHY:
        return [Change(ChangeKind.OUTSIDE_OVER, figures.outside_p, threshold)]
    if decision.verdict is Verdict.PACKET_LOSS:
        return [Change(ChangeKind.LOSS_BELOW, figures.syn_share, LOSS_SHARE)]
    host_over = Change(ChangeKind.HOST_OVER, figures.host_p, threshold)
    host_under = Change(ChangeKind.HOST_UNDER, figures.host_p, threshold)
    if decision.side is Side.NETWORK:
        return [Change(ChangeKind.SHARE_BELOW, figures.share, UNSURE_SHARE), host_over]
    if decision.side is Side.HOST:
        return [Change(ChangeKind.SHARE_ABOVE, figures.share, HOST_SHARE), host_under]
    return [host_under if figures.host_p > threshold else Change(ChangeKind.SHARE_ABOVE, figures.share, UNSURE_SHARE)]


def _of_route(verdict: Verdict, figures: Figures, threshold: float) -> Change | None:
    if figures.host_p > threshold:  # no connection keeps the promise for such a host
        return None
    kinds = {Verdict.DISTANCE: ChangeKind.WARM_UNDER, Verdict.HANDSHAKE: ChangeKind.WARM_OVER}
    return Change(kinds[verdict], figures.warm_p, threshold) if verdict in kinds else None


def _of_work(verdict: Verdict, case: Case) -> Change | None:
    shares, fit, cards = case.shares, case.fit, case.facts.cards
    told = {
        Verdict.THROTTLED: Change(ChangeKind.THROTTLED_BELOW, cards.throttled_share, LEAST_THROTTLED),
        Verdict.QUEUEING: _of_queue(case),
        Verdict.CPU: Change(ChangeKind.CARD_ABOVE, cards.sm_active, IDLE_SM),
        Verdict.NOT_ENOUGH_DATA: Change(ChangeKind.SWEEPS),
    }
    if verdict in {Verdict.PREFILL_BOUND, Verdict.FIXED_OVERHEAD}:
        prompt = shares.prefill if shares.prefill is not None or fit is None else fit.share
        kind = ChangeKind.PROMPT_BELOW if verdict is Verdict.PREFILL_BOUND else ChangeKind.PROMPT_ABOVE
        return Change(kind, prompt, MOST)
    if verdict in {Verdict.DECODE, Verdict.DECODE_BANDWIDTH}:
        figures = case.figures
        decode = figures.generated / figures.host_e2e if shares.decode is None else shares.decode
        return Change(ChangeKind.DECODE_BELOW, decode, MOST)
    return told.get(verdict)


def _of_queue(case: Case) -> Change:
    if case.shares.queue is not None:
        return Change(ChangeKind.QUEUE_BELOW, case.shares.queue, MOST)
    return Change(ChangeKind.QUIET_ABOVE, case.facts.quiet_ms, MOST * case.figures.host)
