"""What a simulated engine has to know, read from the order that a real one would be started with. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from fleet.agent.orders import ReplicaOrder

KEY_VARIABLE: Final = "SIMULATED_ENGINE_KEY"
FAULT_VARIABLE: Final = "SIMULATED_FAULT"
LOAD_SECONDS: Final = 6.0
DEFAULT_SLOTS: Final = 4
DEFAULT_SHARE: Final = 0.6
# What engines call the requests that they work on at once, and the share of the card's memory that they take.
SLOTS: Final = (
    "--max-num-seqs", "--max-running-requests", "--max-concurrent-requests", "--max_batch_size", "--parallel",
)  # fmt: skip
SHARES: Final = ("--gpu-memory-utilization", "--mem-fraction-static", "--cuda-memory-fraction")


class Facts(Struct, frozen=True, kw_only=True):
    """engine: whose words it speaks. model: as callers name it. pages: paths that answer 200 once it is loaded.

    memory_share: of each of its cards. folder: where it says what it does to its cards, "" for nowhere. fault: `crash`,
    `out_of_memory` (it does not start), `stall` (it loads, then no token comes), or "".
    """

    engine: str
    model: str
    port: int
    host: str = "127.0.0.1"
    metrics_path: str = ""
    metrics_port: int | None = None
    pages: list[str] = []
    slots: int = DEFAULT_SLOTS
    memory_share: float = DEFAULT_SHARE
    gpus: list[str] = []
    load_seconds: float
    folder: str = ""
    fault: str = ""


def facts_of(order: ReplicaOrder, folder: str) -> Facts:
    """Return the facts of an order. It listens on loopback alone, whatever was ordered: all simulated machines are this one."""
    body = order.ready.body or {}
    return Facts(
        engine=order.engine,
        model=str(body.get("model") or order.endpoint),
        port=order.port,
        metrics_path=order.metrics_path,
        metrics_port=order.metrics_port,
        pages=[path for path in (order.health_path, order.ready.path if not body else "") if path],
        slots=int(_number(order.command, SLOTS, DEFAULT_SLOTS)),
        memory_share=min(_number(order.command, SHARES, DEFAULT_SHARE), 0.98),
        gpus=order.gpu_uuids,
        load_seconds=LOAD_SECONDS,
        folder=folder,
        fault=order.environment.get(FAULT_VARIABLE, ""),
    )


def _number(command: Sequence[str], flags: Sequence[str], default: float) -> float:
    """Return the value of the first of these flags that a command gives, as `--flag 8` or `--flag=8`."""
    words = [part for word in command for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for word, value in pairwise(words):
        if word in flags:
            try:
                return max(float(value), 0.01)
            except ValueError:
                return default
    return default
