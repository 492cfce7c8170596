"""What a diagnosis is asked about: a subject with what is known of it, and the machines on which its engine runs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from monitoring.probing.models import Probe


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """One machine with the engine: its server, and the port on which the engine listens there."""

    server_id: int
    port: int
    replica_id: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """What a report is about.

    bearer: what the engine itself wants to be shown. path_prefix: of the gateway, which the engine does not know. gpu_ids: of the
    engine's cards. max_num_seqs: requests that one replica works on at once.
    """

    kind: str
    id: int
    name: str
    hosts: Sequence[Host] = ()
    bearer: str = ""
    path_prefix: str = ""
    model: str = ""
    metrics_path: str = ""
    metrics_port: int | None = None
    gpu_ids: Sequence[int] = ()
    replicas: int = 1
    max_num_seqs: int | None = None
    has_prefix_cache: bool | None = None

    def context(self) -> dict[str, Any]:
        """Return what is kept with the report, without what is secret."""
        told = asdict(self)
        for name in ("kind", "id", "name", "hosts", "bearer"):
            del told[name]
        return {**told, "gpu_ids": list(self.gpu_ids)}


# Given a probe, return what it is about, None when that is no more. By subject kind; apps above register theirs.
Finder = Callable[[Probe], Subject | None]
_finders: Final[dict[str, Finder]] = {}


def register_subject(kind: str, finder: Finder) -> None:
    """Say how a kind of subject is found (once, when the app starts)."""
    _finders[kind] = finder


def subject_of(probe: Probe, hosts: Sequence[Host] = ()) -> Subject:
    """Return what a probe is about: what its app knows, else the probe itself with the machines that a person named."""
    finder = _finders.get(probe.subject_kind)
    found = finder(probe) if finder is not None else None
    if found is not None:
        return found
    return Subject(kind="probe", id=probe.pk, name=probe.name, hosts=hosts)
