"""Envoy's files as they should be, and which of them Envoy still has to take. What a change does not touch is not written."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.gateway.envoy import clusters, listening, routing
from fleet.agent.gateway.envoy.admin import Admin, AdminError
from fleet.agent.gateway.envoy.layout import CDS, EDS_FOLDER, LDS, RDS, Config, discovery, eds_path, replace
from fleet.agent.gateway.envoy.naming import digest_of
from fleet.agent.orders import GatewayOrder, Route, Upstream

# What says which version of each file Envoy has.
VERSION_OF: Final = {
    CDS: "cluster_manager.cds.version_text",
    LDS: "listener_manager.lds.version_text",
    RDS: f"http.callers.rds.{routing.NAME}.version_text",
}


class Files:
    """The files of one folder. budget: how many endpoints may have a watched file of their own; the others stand in CDS."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clusters: dict[str, bytes] = {}
        self._routes: dict[str, Route] = {}
        self._versions: dict[str, str] = {}
        self._unconfirmed: set[str] = set()
        self._watched: set[str] = set()
        self.budget = 0
        self.rewritten: list[str] = []

    @property
    def names(self) -> Collection[str]:
        """Endpoints that have files now, those of an earlier run included."""
        return {path.name for path in (self._folder / EDS_FOLDER).glob("*")} | self._clusters.keys()

    def write(
        self,
        order: GatewayOrder,
        routes: Mapping[str, Route],
        changed: Collection[str],
        upstreams: Callable[[Route], Sequence[Upstream]],
    ) -> int:
        """Make the files say what the routes say; returns the bytes written. Raises OSError.

        Routes that lose their endpoint go first, then clusters, then files of replicas; new ones come the other way round.
        """
        self.rewritten = []
        present = [name for name in changed if name in routes]
        gone = [name for name in changed if name not in routes]
        written = 0
        are_clusters_other = not self._versions
        for name in sorted(present):
            size, is_cluster_other = self._write_endpoint(routes[name], upstreams(routes[name]))
            written += size
            are_clusters_other |= is_cluster_other
        is_routing_other = not self._versions or self._is_routing_other(routes)
        if gone and is_routing_other:
            written += self._write_routing(routes)
        for name in gone:
            are_clusters_other |= self._clusters.pop(name, None) is not None
        if are_clusters_other:
            written += self._write(CDS, [msgspec.Raw(self._clusters[name]) for name in sorted(self._clusters)])
        if is_routing_other:
            written += self._write_routing(routes)
        written += self._write(LDS, [listening.listener(order)])
        for name in gone:
            self._remove(name)
        return written

    def waiting(self, admin: Admin) -> set[str] | None:
        """Return what Envoy has not taken yet; None when it cannot be asked."""
        if not self._unconfirmed:
            return set()
        wanted = {stat: self._versions[stat] for stat in self._unconfirmed if stat in self._versions}
        pattern = "version_text$" if len(wanted) > 1 else f"^{next(iter(wanted), 'none').replace('.', '[.]')}$"
        try:
            have = admin.stats(pattern)
        except AdminError:
            return None
        self._unconfirmed = {stat for stat, version in wanted.items() if have.get(stat) != version}
        return self._unconfirmed

    def repeat(self) -> None:
        """Have Envoy read again what it has not taken: it may have refused a port or a certificate that is there by now."""
        for path, stat in VERSION_OF.items():
            if stat in self._unconfirmed:
                replace(self._folder / path, (self._folder / path).read_bytes(), is_forced=True)

    # ---- inside

    def _write_endpoint(self, route: Route, upstreams: Sequence[Upstream]) -> tuple[int, bool]:
        """Write an endpoint's replicas; returns the bytes, and whether its cluster is another one now."""
        resource = clusters.replicas(route, upstreams)
        is_watched = self._may_watch(route.name)
        cluster = msgspec.json.encode(clusters.cluster(route, None if is_watched else resource))
        written = 0
        stat = f"cluster.{route.name}.version_text"
        version = digest_of(msgspec.json.encode(resource))
        size = replace(self._folder / eds_path(route.name), discovery(version, [resource]))
        if size:
            written += size
            self.rewritten.append(eds_path(route.name))
        if is_watched and self._versions.get(stat) != version:
            self._versions[stat] = version
            self._unconfirmed.add(stat)
        is_other = self._clusters.get(route.name) != cluster
        self._clusters[route.name] = cluster
        return written, is_other

    def _may_watch(self, name: str) -> bool:
        if name not in self._watched and len(self._watched) < self.budget:
            self._watched.add(name)
        return name in self._watched

    def _is_routing_other(self, routes: Mapping[str, Route]) -> bool:
        """Say whether anything of the routes but their replicas changed."""
        return {name: _without_replicas(route) for name, route in routes.items()} != self._routes

    def _write_routing(self, routes: Mapping[str, Route]) -> int:
        self._routes = {name: _without_replicas(route) for name, route in routes.items()}
        return self._write(RDS, [routing.route_configuration([routes[name] for name in sorted(routes)])])

    def _write(self, path: str, resources: Sequence[Config | msgspec.Raw]) -> int:
        stat = VERSION_OF[path]
        version = digest_of(msgspec.json.encode(resources))
        if self._versions.get(stat) == version:
            return 0
        written = replace(self._folder / path, discovery(version, resources))
        self._versions[stat] = version
        self._unconfirmed.add(stat)
        if written:
            self.rewritten.append(path)
        return written

    def _remove(self, name: str) -> None:
        self._watched.discard(name)
        self._versions.pop(f"cluster.{name}.version_text", None)
        self._unconfirmed.discard(f"cluster.{name}.version_text")
        folder = self._folder / EDS_FOLDER / name
        for path in (*folder.glob("*"), *folder.glob(".*")):
            path.unlink(missing_ok=True)
        if folder.is_dir():
            folder.rmdir()


def _without_replicas(route: Route) -> Route:
    return msgspec.structs.replace(route, upstreams=[])
