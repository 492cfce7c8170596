"""The kinds of jobs that this agent knows. Adding one is a line here and its package; see docs/adding.md."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fleet.agent.jobs.task import Task

Say = Callable[[int, str], None]
Work = Callable[[Task, Say], Struct]


def _acceptance() -> Work:
    from fleet.agent.acceptance.check import check

    return check


def _rounds() -> Work:
    from fleet.agent.rounds.work import measure

    return measure


def _load() -> Work:
    from fleet.agent.load.work import generate

    return generate


# Each value imports its work, which the agent's own process does not need.
KINDS: Final[dict[str, Callable[[], Work]]] = {
    "acceptance": _acceptance,
    "diagnose": _rounds,
    "load": _load,
    "probe_round": _rounds,
}
