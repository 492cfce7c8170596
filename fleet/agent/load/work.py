"""The job `load`: fetches its order from the panel, sends it, and tells of it piece by piece over the agent's own way."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from fleet.agent.jobs.task import Task
from fleet.agent.load.generator import Generator, StopError
from fleet.agent.load.order import LoadAnswer, LoadDone, LoadOrder, LoadPiece
from fleet.agent.panel import PanelClient, PanelError, RefusedError, TokenRefusedError
from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober
from fleet.agent.probes.target import TargetError, check

Say = Callable[[int, str], None]
# So long the panel may be away: the load goes on meanwhile, and what it found waits.
PATIENCE_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 1.0


class OrderError(ValueError):
    """The panel's order cannot be carried out; the sentence says why."""


def generate(task: Task, say: Say) -> LoadDone:
    """Send what the task's part says. Raises OrderError, or PanelError when its order cannot be had."""
    client = PanelClient(task.panel_url, task.agent_token, task.ca_file)
    try:
        order = client.load_order(int(task.arguments["part"]))
        try:
            for target in order.targets:
                check(target)
        except TargetError as error:
            raise OrderError(str(error)) from None
        own = frozenset((address, port) for address in ("127.0.0.1", "::1") for port in task.own_ports)
        rules = Rules.of(task.probe_networks, places=own)
        sent, stopped = asyncio.run(_send(order, task.vantage, rules, client, say))
    finally:
        client.close()
    return LoadDone(sent, stopped)


async def _send(order: LoadOrder, vantage: str, rules: Rules, client: PanelClient, say: Say) -> tuple[int, str]:
    length = max(order.at_seconds[-1], 1.0) if order.at_seconds else 1.0

    async def tell(piece: LoadPiece) -> LoadAnswer:
        say(min(round(95 * piece.seconds / length), 95), piece.phase)
        return await asyncio.to_thread(_tell, client, piece)

    async with Prober(vantage, rules=rules) as prober:
        return await Generator(order, prober, tell).run()


def _tell(client: PanelClient, piece: LoadPiece) -> LoadAnswer:
    """Tell the panel, again while it is away. Raises StopError when it wants nothing more, or is away for too long."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return client.load_piece(piece)
        except (RefusedError, TokenRefusedError):
            raise StopError("told") from None
        except PanelError:
            if time.monotonic() > end:
                raise StopError("lost") from None
            time.sleep(AGAIN_SECONDS)
