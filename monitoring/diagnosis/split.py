"""From one set of figures to a verdict: healthy, network, host, or both."""

from dataclasses import dataclass
from typing import Final

from monitoring.diagnosis.enums import Limit, Side, Verdict
from monitoring.diagnosis.evidence import Objective
from monitoring.diagnosis.figures import Figures
from monitoring.diagnosis.host import Case, cause_of_work, host_cause
from monitoring.diagnosis.network import Cause, loses_packets, network_cause

NETWORK_SHARE: Final = 0.5
UNSURE_SHARE: Final = 0.4
HOST_SHARE: Final = 0.3
FEWEST_LOST: Final = 2  # connections: a single lost SYN is no verdict about an endpoint that keeps its promise


@dataclass(frozen=True, slots=True)
class Decision:
    """What one set of figures comes to. also: what was found beside it, the larger first."""

    verdict: Verdict
    side: Side
    also: tuple[Verdict, ...] = ()
    limits: frozenset[Limit] = frozenset()


def side_of(figures: Figures, threshold_ms: float) -> tuple[Side, bool]:
    """Return the side, and whether it is sure. The host keeps the promise or not; the network has most of the time or not."""
    if figures.host_p <= threshold_ms:
        if figures.share > NETWORK_SHARE:
            return Side.NETWORK, True
        return (Side.NETWORK, False) if figures.share >= UNSURE_SHARE else (Side.MIXED, True)
    return (Side.HOST, True) if figures.share < HOST_SHARE else (Side.MIXED, True)


def decide(case: Case, objective: Objective, *, pairs: int, has_warm: bool) -> Decision:
    """Return the decision for one set of figures (docs/diagnosis.md tells the steps)."""
    figures, threshold = case.figures, objective.threshold_ms
    network = network_cause(figures, threshold, has_warm=has_warm)
    lost = round(figures.syn_share * pairs)
    if figures.outside_p <= threshold and figures.host_p <= threshold:
        is_losing = loses_packets(figures) and lost >= FEWEST_LOST
        return Decision(Verdict.PACKET_LOSS, Side.NETWORK) if is_losing else Decision(Verdict.HEALTHY, Side.NONE)
    if network.verdict is Verdict.PACKET_LOSS and figures.host_p <= threshold:
        few = frozenset({Limit.FEW_EVENTS}) if lost < FEWEST_LOST else frozenset()
        return Decision(Verdict.PACKET_LOSS, Side.NETWORK, limits=few)
    side, is_sure = side_of(figures, threshold)
    if side is Side.NETWORK:
        limits = network.limits if is_sure else network.limits | {Limit.SHARE_UNCLEAR}
        return Decision(network.verdict, side, _lost(figures, network.verdict), limits)
    host = host_cause(case)
    return _on_host(case, host) if side is Side.HOST else _mixed(figures, network, host)


def _on_host(case: Case, host: Cause | None) -> Decision:
    if host is None:
        return Decision(Verdict.NOT_ENOUGH_DATA, Side.HOST, _lost(case.figures))
    also: tuple[Verdict, ...] = ()
    if host.verdict is Verdict.THROTTLED:
        work = cause_of_work(case)
        also = (work.verdict,) if work is not None and work.verdict is not Verdict.FIXED_OVERHEAD else ()
    return Decision(host.verdict, Side.HOST, (*also, *_lost(case.figures)), host.limits)


def _mixed(figures: Figures, network: Cause, host: Cause | None) -> Decision:
    causes = [network] if host is None else [network, host]
    if figures.share < NETWORK_SHARE:
        causes.reverse()
    also = tuple(cause.verdict for cause in causes)
    limits = frozenset[Limit]().union(*(cause.limits for cause in causes))
    return Decision(Verdict.MIXED, Side.MIXED, (*also, *_lost(figures, *also)), limits)


def _lost(figures: Figures, *named: Verdict) -> tuple[Verdict, ...]:
    return (Verdict.PACKET_LOSS,) if loses_packets(figures) and Verdict.PACKET_LOSS not in named else ()
