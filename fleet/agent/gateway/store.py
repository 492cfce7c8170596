"""What this gateway was last told, on disk: after a restart it serves on, whether or not the panel answers."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.gateway.envoy.layout import replace
from fleet.agent.orders import GatewayOrder, KeyRule, Route, Routes

META: Final = "meta.msgpack"
KEYS: Final = "keys.msgpack"


class Meta(msgspec.Struct):
    """The order, and the version of the routes beside it."""

    order: GatewayOrder
    version: int


class RouteStore:
    """Routes and keys in memory and in a folder, a small file for each route; keys as their digests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._routes_folder = folder / "routes"
        self.routes: dict[str, Route] = {}
        self.keys: list[KeyRule] = []
        self.version = 0
        self.order: GatewayOrder | None = None

    def load(self) -> None:
        """Read what the run before left. What cannot be read is as if it had not been told: the panel tells it again."""
        try:
            meta = msgspec.msgpack.decode((self._folder / META).read_bytes(), type=Meta)
            self.keys = msgspec.msgpack.decode((self._folder / KEYS).read_bytes(), type=list[KeyRule])
            found = [
                msgspec.msgpack.decode(path.read_bytes(), type=Route)
                for path in sorted(self._routes_folder.glob("*.msgpack"))
            ]
        except (OSError, msgspec.MsgspecError):
            self.forget()
            return
        self.routes = {route.name: route for route in found}
        self.order, self.version = meta.order, meta.version

    def take(self, answer: Routes) -> tuple[frozenset[str], bool]:
        """Take what changed; returns the names of routes that are other now, and whether keys are. Raises OSError."""
        gone = set(answer.gone)
        if answer.is_whole:
            gone |= self.routes.keys() - {route.name for route in answer.routes}
        told = {route.name: route for route in answer.routes}
        changed = {name for name, route in told.items() if self.routes.get(name) != route}
        for name in changed:
            self.routes[name] = told[name]
            replace(self._file(name), msgspec.msgpack.encode(told[name]))
        if answer.is_whole:
            self._drop_others(told)
        gone &= self.routes.keys() - told.keys()
        for name in gone:
            del self.routes[name]
            self._file(name).unlink(missing_ok=True)
        have_keys_changed = answer.keys is not None and answer.keys != self.keys
        if answer.keys is not None and have_keys_changed:
            self.keys = answer.keys
            replace(self._folder / KEYS, msgspec.msgpack.encode(self.keys))
        self.version = answer.version
        return frozenset(changed | gone), have_keys_changed

    def keep(self, order: GatewayOrder) -> None:
        """Note order and version, after everything else is on disk. Raises OSError."""
        self.order = order
        if not (self._folder / KEYS).exists():
            replace(self._folder / KEYS, msgspec.msgpack.encode(self.keys))
        replace(self._folder / META, msgspec.msgpack.encode(Meta(order, self.version)))

    def forget(self) -> None:
        """Remove everything: this machine is no gateway any more."""
        for path in (self._folder / META, self._folder / KEYS, *self._routes_folder.glob("*.msgpack")):
            path.unlink(missing_ok=True)
        self.routes, self.keys, self.version, self.order = {}, [], 0, None

    def _drop_others(self, told: Iterable[str]) -> None:
        """Remove files of routes that nobody knows any more: what was there could not be read, or was written for nothing."""
        known = {self._file(name) for name in told}
        for path in self._routes_folder.glob("*"):
            if path not in known:
                path.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self._routes_folder / f"{name.encode().hex()}.msgpack"
