"""What the agent keeps on this machine: who it is (a token: for its owner's eyes only), its policy, spool, jobs, a lock."""

import fcntl
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.policy import TEMPLATE

SYSTEM_STATE_DIR: Final = Path("/var/lib/fleetdeck-agent")


class StateError(Exception):
    """The state directory cannot be used as it is; the sentence says why."""


class Identity(msgspec.Struct, frozen=True):
    """Who this agent is to which panel; written once, when it joins."""

    panel_url: str
    agent_token: str
    server_id: int
    server_name: str
    sample_interval_seconds: float = 5.0
    report_interval_seconds: float = 5.0
    name: str = ""
    ca_file: str = ""
    is_gateway: bool = False


class Status(msgspec.Struct):
    """How the running agent is, written by it now and then for the `status` command."""

    at_ms: int
    started_at_ms: int
    driver_state: str
    driver_detail: str
    gpus: dict[str, str]
    spooled_batches: int
    lost_samples: int
    refused_batches: int
    seconds_since_acknowledged: float
    last_error: str


def default_state_dir() -> Path:
    """Return the usual place: the system's for root, the user's own otherwise."""
    if os.geteuid() == 0:
        return SYSTEM_STATE_DIR
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(base) / "fleetdeck-agent"


def command_line(command: str, state_dir: Path) -> str:
    """Return what to type for one of the agent's commands."""
    return f"{sys.executable} -m fleet.agent {command} --state-dir {state_dir}"


class StateDirectory:
    """The files below one directory, readable by their owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity_path = path / "identity.json"
        self.policy_path = path / "policy.toml"
        self.spool_path = path / "spool"
        self.jobs_path = path / "jobs"
        self.gateway_path = path / "gateway"
        self.engines_path = path / "engines"
        self.kernel_log_path = path / "kernel-log.json"
        self.status_path = path / "status.json"
        self._lock_path = path / "agent.lock"
        self._lock: int | None = None

    def prepare(self) -> None:
        """Make the directory and the policy's template. Raises StateError."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.path.stat().st_uid != os.geteuid():
                raise StateError(f"{self.path} belongs to another user: name one of your own with --state-dir.")
            self.path.chmod(0o700)
            if not self.policy_path.exists():
                self.policy_path.write_text(TEMPLATE)
        except OSError as error:
            raise StateError(f"{self.path} cannot be used: {error.strerror}.") from error

    def identity(self) -> Identity | None:
        """Return who this agent is, None before it joined. Raises StateError."""
        try:
            return msgspec.json.decode(self.identity_path.read_bytes(), type=Identity)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self.identity_path} cannot be read: {error.strerror}.") from error
        except msgspec.DecodeError as error:
            raise StateError(f"{self.identity_path} is damaged ({error}): join again with a new token.") from error

    def write_identity(self, identity: Identity) -> None:
        """Keep who this agent is, whole or not at all. Raises StateError."""
        self._write(self.identity_path, msgspec.json.format(msgspec.json.encode(identity)))

    def status(self) -> Status | None:
        """Return what the running agent last said of itself, None when it never did."""
        try:
            return msgspec.json.decode(self.status_path.read_bytes(), type=Status)
        except (OSError, msgspec.DecodeError):
            return None

    def write_status(self, status: Status) -> None:
        """Say how this agent is. Raises StateError."""
        self._write(self.status_path, msgspec.json.encode(status))

    def forget(self) -> None:
        """Remove everything of this agent but the policy, which is the machine's."""
        for path in (self.identity_path, self.status_path, self.kernel_log_path):
            path.unlink(missing_ok=True)
        self.forget_spool()

    def forget_spool(self) -> None:
        """Remove what waits to be sent: it belongs to the server that this agent was."""
        for directory in (self.spool_path, self.jobs_path, self.engines_path):
            for path in sorted(directory.rglob("*"), reverse=True):
                if path.is_dir():
                    path.rmdir()
                else:
                    path.unlink(missing_ok=True)
        if self.engines_path.is_dir():
            self.engines_path.rmdir()

    def try_lock(self) -> bool:
        """Take the directory for this process until it ends; returns False while another has it. Raises StateError."""
        try:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"{self._lock_path} cannot be opened: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._lock = descriptor
        return True

    def unlock(self) -> None:
        """Let others have the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def running_pid(self) -> int | None:
        """Return the process that has the directory, None when none has."""
        if self._lock is None and self.path.is_dir() and self.try_lock():
            self.unlock()
            return None
        try:
            return int(self._lock_path.read_text())
        except (OSError, ValueError):
            return None

    def _write(self, path: Path, data: bytes) -> None:
        aside = path.with_suffix(".new")
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(data)
            aside.replace(path)
        except OSError as error:
            raise StateError(f"{path} cannot be written: {error.strerror}.") from error
