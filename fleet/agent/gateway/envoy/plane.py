"""The data plane that is Envoy: orders become files, files that Envoy has taken become the applied version."""

import logging
import time
from pathlib import Path
from typing import Final

from fleet.agent.gateway import checks
from fleet.agent.gateway.addresses import Resolver
from fleet.agent.gateway.dataplane import Reading, State, Wanted
from fleet.agent.gateway.envoy import bootstrap, inotify
from fleet.agent.gateway.envoy.admin import AdminError
from fleet.agent.gateway.envoy.certificate import Certificate
from fleet.agent.gateway.envoy.files import Files
from fleet.agent.gateway.envoy.keyfiles import write_keys
from fleet.agent.gateway.envoy.layout import BOOT, ENVOY_LOG, prepare, replace
from fleet.agent.gateway.envoy.proc import last_line
from fleet.agent.gateway.envoy.process import EnvoyProcess
from fleet.agent.gateway.envoy.pulse import Pulse
from fleet.agent.orders import GatewayOrder, Route, Upstream

# Envoy takes a file within milliseconds; one that it has not taken by then, it will not take.
REFUSED_SECONDS: Final = 5.0
REPEAT_SECONDS: Final = 2.0
CERTIFICATE_SECONDS: Final = 5.0

log = logging.getLogger(__name__)


class EnvoyPlane:
    """Envoy, its files and its process in one folder. Not for several threads at once, but for `in_flight`."""

    name = "envoy"

    def __init__(self, folder: Path, resolver: Resolver, executable: str | None) -> None:
        self._folder = folder
        self._resolver = resolver
        self._executable = executable
        self._process = EnvoyProcess(folder)
        self._files = Files(folder)
        self._pulse = Pulse()
        self._certificate = Certificate(folder)
        self._wanted: Wanted | None = None
        self._complaints: dict[str, str] = {}
        self._version, self._applied = 0, 0
        self._written_at = 0.0
        self._look_at_certificate = self._repeat_at = 0.0
        self._is_ready = False
        self.rewritten: list[str] = []

    def apply(self, wanted: Wanted) -> int:
        """Write down what should be served: replicas before the clusters that need them, clusters before their routes."""
        if self._wanted is None:
            prepare(self._folder)
            self._files.budget = inotify.budget(self._process.pid)
        is_first = self._wanted is None
        self._wanted = wanted
        self._follow_certificate()
        written = replace(self._folder / BOOT, bootstrap.bootstrap())
        if is_first or wanted.have_keys_changed:
            written += write_keys(self._folder, wanted.keys)
        changed = wanted.routes.keys() | self._files.names if is_first or wanted.changed is None else wanted.changed
        routes, shared = checks.without_shared_hosts(self._usable(wanted))
        written += self._files.write(wanted.order, routes, changed, self._upstreams)
        self._complaints["hosts"] = " ".join(shared[:3])
        self.rewritten = self._files.rewritten
        self._version = wanted.version
        self._written_at = time.monotonic()
        return written

    def keep(self) -> None:
        """See that Envoy runs with its present command line, and that its certificate is the newest."""
        if self._wanted is None or self._executable is None:
            return
        if time.monotonic() >= self._look_at_certificate:
            self._follow_certificate()
        self._end_if_stuck(self._wanted.order)
        command = bootstrap.command(self._executable)
        if self._process.keep(command):
            self._is_ready = False
            self._written_at = time.monotonic()

    def read(self) -> Reading:
        """Return how Envoy is, and which routes it has."""
        state, detail = self._state()
        is_refused = False
        if state == "serving" and self._applied != self._version:
            waiting = self._files.waiting(self._process.admin)
            if waiting is not None and not waiting:
                self._applied = self._version
            elif time.monotonic() - self._written_at > REFUSED_SECONDS:
                self._repeat()
                is_refused = True
                state = "serving" if self._applied else "failed"
                names = ", ".join(sorted(waiting or ())[:3])
                detail = f"Envoy did not take {names or 'its files'}. {last_line(self._folder / ENVOY_LOG)}"
        complaints = " ".join(filter(None, [detail, self._certificate.problem, *self._complaints.values()]))
        is_settled = state != "starting" and (self._applied == self._version or is_refused)
        return Reading(state, self._applied, complaints[:500], is_settled)

    def refresh(self) -> None:
        """Look again at what replicas' host names mean."""
        self._resolver.refresh()

    def in_flight(self) -> dict[str, int]:
        """Return the requests under way by endpoint: those with a replica and those that wait for a connection."""
        try:
            values = self._process.admin.stats(r"^cluster\..+\.upstream_rq(_pending)?_active$")
        except AdminError:
            return {}
        sums: dict[str, int] = {}
        for name, value in values.items():
            endpoint = name.removeprefix("cluster.").rpartition(".")[0]
            sums[endpoint] = sums.get(endpoint, 0) + int(value)
        return sums

    def reopen_log(self) -> None:
        """Have Envoy write its access log to a new file. Raises AdminError."""
        self._process.reopen_log()

    def stop(self) -> None:
        """End Envoy."""
        self._process.stop()
        self._wanted, self._is_ready, self._applied, self._version = None, False, 0, 0

    @property
    def pid(self) -> int | None:
        """Envoy's process, None when it does not run."""
        return self._process.pid

    def _end_if_stuck(self, order: GatewayOrder) -> None:
        pid = self._process.pid if self._is_ready else None
        if pid is not None and self._pulse.is_stuck(pid, self._process.admin.is_silent, order, time.monotonic()):
            self._process.end_stuck()

    def _repeat(self) -> None:
        if time.monotonic() >= self._repeat_at:
            self._repeat_at = time.monotonic() + REPEAT_SECONDS
            self._files.repeat()

    def _state(self) -> tuple[State, str]:
        if self._executable is None:
            return "failed", "Envoy is not installed here: run the join line again with --role gateway."
        if not self._process.is_running():
            self._is_ready = False
            return ("failed", self._process.last_end) if self._process.last_end else ("starting", "")
        if not self._is_ready:
            self._is_ready = self._process.admin.is_ready()
        if self._is_ready and self._pulse.is_silent:
            return "failed", "Envoy runs and does not answer. It is ended and started again if it stays so."
        return ("serving", "") if self._is_ready else ("starting", "")

    def _usable(self, wanted: Wanted) -> list[Route]:
        usable, refused = [], []
        for name in sorted(wanted.routes):
            complaint = checks.complaint_about(wanted.routes[name])
            if complaint:
                refused.append(complaint)
            else:
                usable.append(checks.bounded(wanted.routes[name]))
        self._complaints["routes"] = " ".join(refused[:3])
        return usable

    def _upstreams(self, route: Route) -> list[Upstream]:
        upstreams, complaints = checks.usable_upstreams(route, self._resolver)
        self._complaints[f"route {route.name}"] = " ".join(complaints[:3])
        return upstreams

    def _follow_certificate(self) -> None:
        self._look_at_certificate = time.monotonic() + CERTIFICATE_SECONDS
        if self._wanted is not None:
            self._certificate.follow(self._wanted.order)
