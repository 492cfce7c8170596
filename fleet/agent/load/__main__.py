"""`python -m fleet.agent.load`: the panel as a place that loads. An order on standard input, then a line for each piece.

After each piece a line with the answer is read. Started by the panel's prober, not by people.
"""

import asyncio
import sys

import msgspec

from fleet.agent.load.generator import Generator, StopError
from fleet.agent.load.order import LoadAnswer, LoadOrder, LoadPiece
from fleet.agent.probes.addresses import Rules
from fleet.agent.probes.prober import Prober


class Given(msgspec.Struct):
    """The first line: what to send, as which place, and which private networks are allowed."""

    order: LoadOrder
    vantage: str
    networks: list[str]


def _ask(piece: LoadPiece) -> LoadAnswer:
    sys.stdout.buffer.write(msgspec.json.encode(piece) + b"\n")
    sys.stdout.buffer.flush()
    line = sys.stdin.buffer.readline()
    if not line:
        raise StopError("lost")
    return msgspec.json.decode(line, type=LoadAnswer)


async def _tell(piece: LoadPiece) -> LoadAnswer:
    return await asyncio.to_thread(_ask, piece)


async def _run(given: Given) -> None:
    async with Prober(given.vantage, rules=Rules.of(given.networks)) as prober:
        await Generator(given.order, prober, _tell).run()


if __name__ == "__main__":
    asyncio.run(_run(msgspec.json.decode(sys.stdin.buffer.readline(), type=Given)))
