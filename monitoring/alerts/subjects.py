"""What alerts are about: names, labels and hosts of subjects, by kind. Apps above register theirs when they start."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Q

from fleet.enums import ServerState
from fleet.models import Gpu, Server
from monitoring.probing.models import Probe

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that a rule is about.

    labels: what silences, scopes and overrides match by. hosts: the servers that it hangs on, all of them. endpoint: what it
    serves, if anything. is_busy: it has requests. is_maintained: work is done on it. cold_from, cold_until: Unix seconds
    between which it had just started; both 0 when that is long ago.
    """

    kind: str
    id: int
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[int, ...] = ()
    endpoint: int | None = None
    is_busy: bool = False
    is_maintained: bool = False
    cold_from: float = 0.0
    cold_until: float = 0.0

    @property
    def host_id(self) -> int | None:
        """Return the server that it hangs on, when it is one."""
        return self.hosts[0] if len(self.hosts) == 1 else None


Loader = Callable[[Collection[int] | None], dict[int, Subject]]
_loaders: Final[dict[str, Loader]] = {}


Uses = Callable[[], Mapping[int, tuple[int, bool]]]
_uses: Final[dict[str, Uses]] = {}


def register_uses(kind: str, read: Uses) -> None:
    """Say what subjects of a kind serve: read() -> {id: (endpoint, whether it has requests)}. One query."""
    _uses[kind] = read


def uses_of(kind: str) -> Mapping[int, tuple[int, bool]]:
    """Return what subjects of a kind serve, as far as anybody told."""
    return _uses[kind]() if kind in _uses else {}


def register_subjects(kind: str, loader: Loader) -> None:
    """Add a kind. loader(ids) -> {id: Subject} of those that exist, of all when ids is None; at most three queries."""
    _loaders[kind] = loader


def subject_kinds() -> list[str]:
    """Return every kind by its name."""
    return sorted(_loaders)


def subjects_load(kind: str, ids: Collection[int] | None) -> dict[int, Subject]:
    """Return subjects of a kind that exist; none of a kind that nobody registered."""
    loader = _loaders.get(kind)
    if loader is None or (ids is not None and not ids):
        return {}
    return loader(ids)


class Subjects:
    """Subjects as far as one round needs them, each kind read once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, Subject]] = {}

    def all(self, kind: str) -> dict[int, Subject]:
        """Return every subject of a kind."""
        if kind not in self._known:
            self._known[kind] = subjects_load(kind, None)
        return self._known[kind]

    def get(self, key: Key) -> Subject | None:
        """Return one subject, None when it is gone."""
        return self.all(key[0]).get(key[1])


def _among(ids: Collection[int] | None, field_name: str = "pk") -> Q:
    return Q() if ids is None else Q(**{f"{field_name}__in": list(ids)})


def _labels(server_labels: Mapping[str, str], **own: str) -> dict[str, str]:
    return {**{str(key): str(value) for key, value in server_labels.items()}, **own}


def servers(ids: Collection[int] | None) -> dict[int, Subject]:
    """Return servers that are not retired."""
    rows = Server.objects.filter(_among(ids), retired_at=None).only("name", "labels", "provider", "region", "state")
    return {
        row.pk: Subject(
            "server", row.pk, row.name, _labels(row.labels, provider=row.provider, region=row.region), (row.pk,),
            is_maintained=row.state == ServerState.MAINTENANCE,
        )
        for row in rows
    }  # fmt: skip


def gpus(ids: Collection[int] | None) -> dict[int, Subject]:
    """Return cards that are in a machine."""
    rows = (
        Gpu.objects.filter(_among(ids), removed_at=None, server__retired_at=None)
        .select_related("server")
        .only("name", "index", "uuid", "server__name", "server__labels", "server__state", "server__provider")
    )
    uses = uses_of("gpu")
    return {
        row.pk: Subject(
            "gpu", row.pk, f"{row.server.name} #{row.index if row.index is not None else row.uuid[:12]}",
            _labels(row.server.labels, provider=row.server.provider, model=row.name), (row.server_id,),
            endpoint=uses.get(row.pk, (None, False))[0], is_busy=uses.get(row.pk, (None, False))[1],
            is_maintained=row.server.state == ServerState.MAINTENANCE,
        )
        for row in rows
    }  # fmt: skip


def probes(ids: Collection[int] | None) -> dict[int, Subject]:
    """Return probes that are about themselves."""
    rows = Probe.objects.filter(_among(ids), is_enabled=True)
    return {row.pk: Subject("probe", row.pk, row.name) for row in rows.only("name")}


def places(ids: Collection[int] | None) -> dict[int, Subject]:
    """Return places that probe: servers by their id, the panel as 0."""
    found = {key: Subject("place", key, each.name, each.labels, each.hosts) for key, each in servers(ids).items()}
    if ids is None or 0 in ids:
        found[0] = Subject("place", 0, "panel")
    return found


def register_all() -> None:
    """Register what monitoring itself knows of."""
    register_subjects("server", servers)
    register_subjects("gpu", gpus)
    register_subjects("probe", probes)
    register_subjects("place", places)
