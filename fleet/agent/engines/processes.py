"""Engines as plain processes, for machines without Docker: each kept by a keeper, found again by what the keeper wrote down."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec

from fleet.agent.engines import keeper
from fleet.agent.engines.contract import Exit, Look, StartError, Tell, UnusableError
from fleet.agent.orders import ReplicaOrder
from fleet.agent.policy import Policy

START_SECONDS: Final = 15.0
KEEPER_SECONDS: Final = 3.0
# What engines may know of this process's environment; the rest (a panel's own agent has secrets there) is none of theirs.
PASSED_ON: Final = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CUDA_HOME",
    "CUDA_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY", "VIRTUAL_ENV", "CONDA_PREFIX",
})  # fmt: skip
PASSED_ON_PREFIXES: Final = ("LC_", "XDG_", "HF_", "MODELSCOPE_", "VLLM_", "SGLANG_", "NCCL_", "TORCH_", "TRITON_")


class _Run(msgspec.Struct):
    nonce: str
    generation: int
    boot_id: str
    engine: tuple[int, int]
    keeper: tuple[int, int]
    started_at_ms: int


class _Ended(msgspec.Struct):
    nonce: str
    ended_at_ms: int
    code: int | None = None
    signal: int | None = None
    reason: str = ""
    spawn_error: str = ""


class ProcessRuntime:
    """Replicas below one folder, a folder each. owner: names this agent in its engines' environment."""

    def __init__(self, folder: Path, owner: str, policy: Policy) -> None:
        self._folder = folder
        self._owner = owner
        self._policy = policy
        self._keepers: list[subprocess.Popen[bytes]] = []

    def version(self) -> str:
        """Return `ok`. Raises UnusableError."""
        if not self._policy.allow_processes:
            raise UnusableError("This machine's policy.toml has allow_processes = false.")
        return "ok"

    def prepare(self, order: ReplicaOrder, tell: Tell) -> str:  # noqa: ARG002 (the contract's)
        """Return an empty id: there is no image."""
        return ""

    def start(self, order: ReplicaOrder, log: Path) -> None:
        """Start a keeper and, by it, the engine. Raises StartError."""
        if not order.command:
            raise StartError("spawn_failed", "The order names no program to run.", is_permanent=True)
        self.end(order.id, is_hard=True)
        self.clear(order.id)
        folder = self._folder / str(order.id)
        temporary = folder / "tmp"
        nonce = uuid4().hex
        try:
            shutil.rmtree(temporary, ignore_errors=True)  # of the run before
            temporary.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StartError("spawn_failed", f"{temporary}: {error.strerror}.") from error
        marker = self._marker(order.id, order.generation, nonce)
        asked = {
            "argv": order.command,
            "environment": environment_for(order, marker, temporary),
            "directory": str(folder),
            "log": str(log),
            "run_file": str(folder / "run.json"),
            "exit_file": str(folder / "exit.json"),
            "nonce": nonce,
            "generation": order.generation,
            "marker": marker,
            "memory_limit_bytes": order.memory_limit_bytes,
        }
        self._await(order.id, nonce, self._spawn(asked))

    def look(self, replica: int) -> Look | None:
        """Return what there is of one replica."""
        run, ended = self._read(replica, "run.json", _Run), self._read(replica, "exit.json", _Ended)
        self._reap()
        if run is None:
            return None
        pid, ticks = run.engine
        state = keeper.stat_fields(pid)[:1] if run.boot_id == keeper.boot_id() and _is(pid, ticks) else []
        how: Exit | None = None
        if ended is not None and ended.nonce == run.nonce:
            how = Exit(ended.code, ended.signal, ended.reason or "exited")
        elif (not state or state == ["Z"]) and not self._is_kept(run):
            how = Exit(detail="Nobody saw how it ended: its keeper was gone too.")
        return Look(
            generation=run.generation,
            handle=f"pid {pid}",
            age_seconds=keeper.age_seconds(ticks),
            ended=how,
            is_frozen=how is None and state == ["T"],
            pid=pid,
        )

    def end(self, replica: int, *, is_hard: bool) -> None:
        """Send SIGTERM to the engine, or SIGKILL to all of it."""
        run = self._read(replica, "run.json", _Run)
        if run is None or run.boot_id != keeper.boot_id():
            return
        pid, ticks = run.engine
        if _is(pid, ticks):
            with suppress(OSError):  # it ended in this moment
                if is_hard:
                    os.killpg(pid, signal.SIGKILL)
                else:
                    os.kill(pid, signal.SIGTERM)
                    os.killpg(pid, signal.SIGCONT)  # a stopped process would not notice
        if is_hard:
            keeper.end_marked(self._marker(replica, run.generation, run.nonce))

    def clear(self, replica: int) -> None:
        """Forget the run that ended."""
        for name in ("run.json", "exit.json"):
            (self._folder / str(replica) / name).unlink(missing_ok=True)

    def ours(self) -> list[int]:
        """Return the replicas with a run that was not cleared away."""
        return [int(path.parent.name) for path in self._folder.glob("*/run.json") if path.parent.name.isdigit()]

    def fetch_log(self, replica: int, log: Path) -> None:
        """Do nothing: processes write into the file."""

    # ---- inside

    def _marker(self, replica: int, generation: int, nonce: str) -> str:
        return f"{self._owner}/{replica}/{generation}/{nonce}"

    def _spawn(self, asked: dict[str, Any]) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-I", "-S", keeper.__file__]
        try:
            process = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
                start_new_session=True,
            )
            assert process.stdin is not None  # noqa: S101 (asked for above)
            with process.stdin as pipe:
                pipe.write(msgspec.json.encode(asked))
        except OSError as error:
            raise StartError("spawn_failed", f"The keeper of the process cannot be started: {error}.") from error
        self._keepers.append(process)
        return process

    def _await(self, replica: int, nonce: str, process: subprocess.Popen[bytes]) -> None:
        """Wait until the keeper says that the engine was started. Raises StartError."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            is_over = process.poll() is not None
            ended = self._read(replica, "exit.json", _Ended)
            if ended is not None and ended.spawn_error:
                self.clear(replica)
                raise StartError("spawn_failed", f"{ended.spawn_error}.", is_permanent=True)
            run = self._read(replica, "run.json", _Run)
            if run is not None and run.nonce == nonce:
                return
            if is_over:
                raise StartError("spawn_failed", f"The keeper of the process ended: is there room in {self._folder}?")
            time.sleep(0.02)
        process.kill()
        raise StartError("spawn_failed", f"The keeper of the process said nothing for {START_SECONDS:.0f} s.")

    def _read(self, replica: int, name: str, kind: type[Any]) -> Any:
        try:
            return msgspec.json.decode((self._folder / str(replica) / name).read_bytes(), type=kind)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def _is_kept(self, run: _Run) -> bool:
        """Say whether the engine's keeper is there and will say how the engine ended."""
        pid, ticks = run.keeper
        return run.boot_id == keeper.boot_id() and _is(pid, ticks) and keeper.stat_fields(pid)[:1] != ["Z"]

    def _reap(self) -> None:
        self._keepers = [process for process in self._keepers if process.poll() is None]


def _is(pid: int, ticks: int) -> bool:
    """Say whether this pid is still the process that it was: numbers are given out again."""
    return ticks != 0 and keeper.start_ticks(pid) == ticks


def environment_for(order: ReplicaOrder, marker: str, temporary: Path) -> dict[str, str]:
    """Return an engine's environment: of ours what it may know, what was ordered, its cards and no others."""
    own = {
        name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith(PASSED_ON_PREFIXES)
    }
    return {
        **own,
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(temporary),
        **order.environment,
        **order.secrets,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(order.gpu_uuids),
        "NVIDIA_VISIBLE_DEVICES": ",".join(order.gpu_uuids) or "void",
        keeper.REPLICA_VARIABLE: marker,
    }
