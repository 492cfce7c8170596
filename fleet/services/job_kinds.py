"""The kinds of jobs: how long each may take, and the shape of its result, to which what agents send is held."""

from dataclasses import dataclass
from typing import Final

import msgspec

from fleet.agent.acceptance.found import Found
from fleet.agent.load.order import LoadDone
from fleet.agent.rounds.plan import Found as RoundsFound
from fleet.enums import JobKind


@dataclass(frozen=True, slots=True)
class KindOfJob:
    """time_limit_seconds: after so long the agent kills it. result: what it must return, with every bound in its types."""

    time_limit_seconds: int
    result: type[msgspec.Struct]


KINDS: Final[dict[JobKind, KindOfJob]] = {
    JobKind.ACCEPTANCE: KindOfJob(150, Found),
    JobKind.DIAGNOSE: KindOfJob(3_000, RoundsFound),
    JobKind.PROBE_ROUND: KindOfJob(3_000, RoundsFound),
    JobKind.LOAD: KindOfJob(8 * 3_600, LoadDone),
}
