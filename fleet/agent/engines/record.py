"""What the agent remembers of each replica and of its orders, in files of mode 600: they hold secrets of the engines."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec

from fleet.agent.orders import ReplicaOrder, ReplicaState

ORDERS: Final = "orders.json"
OWNER: Final = "owner"
RECORD: Final = "record.json"


class Orders(msgspec.Struct):
    """The last orders that were heard, for an agent that starts while the panel is away."""

    version: int
    replicas: list[ReplicaOrder]


class Record(msgspec.Struct, omit_defaults=True):
    """One replica. order: the one that it was started by. Stamps are of the wall clock, in ms.

    starts: when it was started, of this generation. is_over: it failed and is not started again. serving_since_ms: since when
    this run answered, None before. trouble_since_ms: since when it cannot be started at all.
    """

    order: ReplicaOrder
    state: ReplicaState = "pending"
    reason: str = ""
    detail: str = ""
    since_ms: int = 0
    exit_code: int | None = None
    starts: list[int] = []
    restarts: int = 0
    is_over: bool = False
    serving_since_ms: int | None = None
    trouble_since_ms: int | None = None
    image_id: str = ""


class Book:
    """The files below one folder: orders, whose engines these are, a folder for each replica."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def owner(self) -> str:
        """Return the name that this agent's engines carry, made at first need. Raises OSError."""
        path = self.folder / OWNER
        with suppress(FileNotFoundError):
            if name := path.read_text().strip():
                return name
        name = uuid4().hex
        self._write(path, name.encode())
        return name

    def orders(self) -> Orders | None:
        """Return the orders of before, None when there are none."""
        try:
            return msgspec.json.decode((self.folder / ORDERS).read_bytes(), type=Orders)
        except (OSError, msgspec.MsgspecError):
            return None

    def keep_orders(self, orders: Orders) -> None:
        """Keep the orders. Raises OSError."""
        self._write(self.folder / ORDERS, msgspec.json.encode(orders))

    def forget_orders(self) -> None:
        """Remove the orders: none is open, and an agent that starts has nothing to do."""
        (self.folder / ORDERS).unlink(missing_ok=True)

    def records(self) -> dict[int, Record]:
        """Return what is remembered, by replica."""
        found = {}
        for path in self.folder.glob(f"*/{RECORD}"):
            with suppress(OSError, msgspec.MsgspecError, ValueError):
                found[int(path.parent.name)] = msgspec.json.decode(path.read_bytes(), type=Record)
        return found

    def keep(self, record: Record) -> None:
        """Keep what is known of a replica. Raises OSError."""
        self._write(self.folder_of(record.order.id) / RECORD, msgspec.json.encode(record))

    def forget(self, replica: int) -> None:
        """Remove everything of a replica, its logs included."""
        shutil.rmtree(self.folder_of(replica), ignore_errors=True)

    def folder_of(self, replica: int) -> Path:
        """Return the folder of a replica."""
        return self.folder / str(replica)

    def log_of(self, order: ReplicaOrder) -> Path:
        """Return the log of one generation."""
        return self.folder_of(order.id) / f"{order.generation}.log"

    def drop_old_logs(self, order: ReplicaOrder) -> None:
        """Remove the logs of all generations but this one and the one before it."""
        logs = [path for path in self.folder_of(order.id).glob("*.log") if path.stem.isdigit()]
        for path in sorted(logs, key=lambda path: int(path.stem))[:-2]:
            for part in self.folder_of(order.id).glob(f"{path.name}*"):
                part.unlink(missing_ok=True)

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside = path.with_suffix(".new")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        aside.replace(path)
