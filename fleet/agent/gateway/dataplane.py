"""What the agent needs of whatever carries the requests: Envoy today, something else behind the same three verbs tomorrow."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from fleet.agent.orders import GatewayOrder, KeyRule, Route

State = Literal["serving", "starting", "failed"]


class Wanted(Struct, frozen=True):
    """What should be served. version: of the routes. changed: names of routes that are new, other or gone; None for all."""

    order: GatewayOrder
    version: int
    routes: Mapping[str, Route]
    keys: Sequence[KeyRule]
    changed: frozenset[str] | None = None
    have_keys_changed: bool = True


class Reading(Struct, frozen=True):
    """How the data plane is. applied_version: of the routes that it serves for certain. detail: a sentence on what is wrong.

    is_settled: that it is of no use to look again within milliseconds.
    """

    state: State
    applied_version: int
    detail: str = ""
    is_settled: bool = True


class DataPlane(Protocol):
    """Carries requests by itself once it was told how: it needs neither the agent nor the panel for that."""

    name: str

    def apply(self, wanted: Wanted) -> int:
        """Write down what should be served; returns the bytes written. Raises OSError."""

    def keep(self) -> None:
        """See that it runs: take over what runs already, start what does not, start again what ended."""

    def read(self) -> Reading:
        """Return how it is."""

    def refresh(self) -> None:
        """Look again at what replicas' host names mean."""

    def in_flight(self) -> dict[str, int]:
        """Return how many requests are under way, by endpoint; empty when it cannot be asked."""

    def stop(self) -> None:
        """End it: a gateway is not wanted here any more."""
