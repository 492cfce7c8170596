"""The way in from the agent: nothing of the gateway is loaded on a machine that is none."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.agent.gateway.lane import GatewayLane
    from fleet.agent.orders import GatewayOrder
    from fleet.agent.policy import Policy
    from fleet.agent.state import Identity, StateDirectory


class GatewayDoor:
    """The gateway of this machine, if it is one."""

    def __init__(self, state: StateDirectory, identity: Identity, policy: Policy) -> None:
        self._is_allowed = policy.allow_gateway
        self._folder = state.gateway_path
        self._identity = identity
        self._lane: GatewayLane | None = None

    def start(self) -> None:
        """Serve at once what was served before, whether or not the panel answers."""
        if (self._folder / "meta.msgpack").exists():
            self._open()

    def follow(self, version: int, order: GatewayOrder | None) -> None:
        """Take the panel's order. version: of the assignments that it came with."""
        if order is not None or self._lane is not None:
            self._open().follow(version, order)

    def close(self) -> None:
        """Stop following; the data plane goes on serving."""
        if self._lane is not None:
            self._lane.close()

    def _open(self) -> GatewayLane:
        if self._lane is None:
            from fleet.agent.gateway.lane import GatewayLane

            self._lane = GatewayLane(self._folder, self._identity, is_allowed=self._is_allowed)
            self._lane.start()
        return self._lane


def end_gateway(state: StateDirectory) -> None:
    """End what still serves here and remove what it knows: this machine leaves its panel. No agent runs meanwhile."""
    if state.gateway_path.exists():
        from fleet.agent.gateway.envoy.process import EnvoyProcess

        EnvoyProcess(state.gateway_path / "envoy").stop()
        shutil.rmtree(state.gateway_path, ignore_errors=True)
