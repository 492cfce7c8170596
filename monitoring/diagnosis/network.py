"""The network branch: which part between caller and host takes the time."""

from dataclasses import dataclass
from typing import Final

from monitoring.diagnosis.enums import Limit, Verdict
from monitoring.diagnosis.figures import Figures

LOSS_SHARE: Final = 0.02  # of connections that waited for a second SYN
NEAR_MS: Final = 20.0  # a round trip within one region
FAR_SHARE: Final = 0.3  # of the time over open connections, where the host is slow as well
LOST_OF_SLOW: Final = 0.1  # of slow rounds: the others lost a packet too, of a kind that connections do not tell
WAITED_OF_SLOW: Final = 0.9  # of slow rounds: what is slow by less than a timeout is slow for another reason
SAME: Final = 0.9  # first token against last, outside: nothing was streamed
STREAMED: Final = 0.7  # the same on the host: there it was


@dataclass(frozen=True, slots=True)
class Cause:
    """A verdict of one branch, with what it could not look at."""

    verdict: Verdict
    limits: frozenset[Limit] = frozenset()


def network_cause(figures: Figures, threshold_ms: float, *, has_warm: bool) -> Cause:
    """Return the cause of the largest part: name, handshakes and round trips, gateway, body.

    When only the connections that lost a SYN miss the objective, it is the loss. A line that loses those loses requests and
    answers too, which are sent again after 200 ms and more: so it is the loss as well where the median keeps the objective,
    what misses it does so by that much, and a part of it lost a SYN.
    """
    if loses_packets(figures) and figures.outside_p > threshold_ms and _is_by_loss(figures, threshold_ms):
        return Cause(Verdict.PACKET_LOSS)
    parts = {
        Verdict.DNS: figures.dns,
        Verdict.GATEWAY: figures.counted_hop,
        Verdict.TRANSFER: figures.transfer,
        Verdict.HANDSHAKE: figures.tcp + figures.tls + figures.rtt,
    }
    largest = max(parts, key=lambda verdict: parts[verdict])
    if largest is Verdict.GATEWAY and is_buffered(figures):
        return Cause(Verdict.BUFFERING)
    if largest is Verdict.HANDSHAKE:
        limits = frozenset() if has_warm else frozenset({Limit.NO_WARM})
        return Cause(Verdict.DISTANCE if _is_far(figures, threshold_ms) else Verdict.HANDSHAKE, limits)
    return Cause(largest)


def _is_by_loss(figures: Figures, threshold_ms: float) -> bool:
    if figures.calm_p <= threshold_ms:
        return True
    is_usually_well = figures.outside <= threshold_ms
    return is_usually_well and figures.lost_of_slow >= LOST_OF_SLOW and figures.waited_of_slow >= WAITED_OF_SLOW


def _is_far(figures: Figures, threshold_ms: float) -> bool:
    """Whether open connections are slow as well. Where the host alone misses the objective, they cannot keep it anyhow: then by
    what the network still has of the time.
    """
    if figures.rtt <= NEAR_MS:
        return False
    if figures.host_p <= threshold_ms:
        return figures.warm_p > threshold_ms
    left = figures.rtt + figures.transfer + figures.counted_hop
    return left / (left + figures.host) >= FAR_SHARE


def loses_packets(figures: Figures) -> bool:
    """Whether more than 2 % of connections had to send their SYN again."""
    return figures.syn_share > LOSS_SHARE


def is_buffered(figures: Figures) -> bool:
    """Whether a stream of the host comes out in one piece; False where it is no stream (NaN compares false)."""
    return figures.ttft >= SAME * figures.e2e and figures.host_ttft < STREAMED * figures.host_e2e
