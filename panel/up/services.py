"""The servers that the panel stands on: embedded ones, or those that DATABASE_URL, REDIS_URL and BROKER_URL name."""

import asyncio
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psycopg

from panel.up import postgres, valkey
from panel.up.account import Account, service_account
from panel.up.datadir import read_json, replace_private
from panel.up.errors import UpError
from panel.up.supervisor import Supervisor

READY_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 30.0
OLDEST_POSTGRES: Final = 150000
POSTGRES_SCHEMES: Final = ("postgresql", "postgres", "psql", "pgsql")
RECORD_NAME: Final = "services.json"


@dataclass(frozen=True, slots=True)
class Given:
    """The addresses in the environment; None where the embedded server is wanted."""

    database_url: str | None
    redis_url: str | None

    @classmethod
    def from_environment(cls) -> "Given":
        """Read them; an empty variable counts as none."""
        return cls(os.environ.get("DATABASE_URL") or None, os.environ.get("REDIS_URL") or None)


async def start(supervisor: Supervisor, data_dir: Path, given: Given, environment: dict[str, str]) -> dict[str, str]:
    """Start what is embedded, wait for what is not, and return the addresses that children need in their environment.

    The addresses of embedded servers are also left in <data dir>/services.json, for commands typed beside the panel.
    """
    account = None if given.database_url and given.redis_url else service_account()
    before = read_json(data_dir / RECORD_NAME) or {}
    embedded: dict[str, str] = {}
    if given.database_url:
        await _await_database(supervisor, given.database_url)
    else:
        embedded["DATABASE_URL"] = await _start_postgres(supervisor, data_dir, account, environment)
    if given.redis_url:
        await _await_valkey(supervisor, given.redis_url)
    else:
        embedded["REDIS_URL"] = await _start_valkey(supervisor, data_dir, account, before.get("REDIS_URL"), environment)
    if os.environ.get("BROKER_URL"):
        supervisor.say(f"Tasks go through {without_password(os.environ['BROKER_URL'])} (BROKER_URL)")
    replace_private(data_dir / RECORD_NAME, json.dumps(embedded))
    return embedded


async def _start_postgres(
    supervisor: Supervisor, data_dir: Path, account: Account | None, environment: dict[str, str]
) -> str:
    server = await asyncio.to_thread(postgres.prepare, data_dir, account, say=supervisor.say)
    child = supervisor.start(server.spec(environment=environment))
    await supervisor.until_ready(child, server.is_ready, seconds=READY_SECONDS, what="Postgres")
    await asyncio.to_thread(server.create_database)
    supervisor.say("Postgres answers")
    return server.url


async def _start_valkey(
    supervisor: Supervisor, data_dir: Path, account: Account | None, before: str | None, environment: dict[str, str]
) -> str:
    server = valkey.prepare(data_dir, account, url_before=before)
    child = supervisor.start(server.spec(environment=environment))
    await supervisor.until_ready(child, server.is_ready, seconds=READY_SECONDS, what="Valkey")
    supervisor.say("Valkey answers")
    return server.url


def without_password(url: str) -> str:
    """Return an address that may be shown."""
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":…@") if parts.password else url


async def _await_database(supervisor: Supervisor, url: str) -> None:
    """Wait for the database of DATABASE_URL and check its version. Raises UpError."""
    if urlsplit(url).scheme not in POSTGRES_SCHEMES:
        raise UpError(
            f"DATABASE_URL ({without_password(url)}) is no address of a Postgres: postgresql://user:…@host/name."
        )
    supervisor.say(f"Using the database {without_password(url)} (DATABASE_URL)")
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(url, connect_timeout=5) as connection:
                version = connection.info.server_version
            break
        except psycopg.Error as error:
            if asyncio.get_running_loop().time() > deadline:
                sentence = " ".join(str(error).split())
                raise UpError(
                    f"The database of DATABASE_URL ({without_password(url)}) does not answer: {sentence}"
                ) from error
        await asyncio.sleep(1.0)
    if version < OLDEST_POSTGRES:
        raise UpError(f"The database of DATABASE_URL is Postgres {version // 10000}; Fleetdeck needs 15 or newer.")


async def _await_valkey(supervisor: Supervisor, url: str) -> None:
    """Wait for the Valkey (or Redis) of REDIS_URL. Raises UpError."""
    supervisor.say(f"Using the Valkey {without_password(url)} (REDIS_URL)")
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    try:
        while not await valkey.answers(url):
            if asyncio.get_running_loop().time() > deadline:
                raise UpError(f"The Valkey of REDIS_URL ({without_password(url)}) does not answer, or refuses us.")
            await asyncio.sleep(1.0)
    except (ValueError, socket.gaierror) as error:
        raise UpError(f"REDIS_URL is no address of a Valkey: {error}") from error
