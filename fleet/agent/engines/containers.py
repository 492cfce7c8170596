"""Engines in containers, through the Docker Engine API: found again by their labels, and never trusted to be as was asked."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from fleet.agent.engines import container_logs, docker_socket, keeper, pull
from fleet.agent.engines.container_spec import creation, mismatch
from fleet.agent.engines.contract import Exit, Look, StartError, Tell, UnusableError
from fleet.agent.orders import ReplicaOrder
from fleet.agent.policy import Policy

OWNER_LABEL: Final = "fleetdeck.agent"
REPLICA_LABEL: Final = "fleetdeck.replica"
GENERATION_LABEL: Final = "fleetdeck.generation"
_NO_GPU: Final = (
    "could not select device driver",
    "nvidia-container",
    "unknown device",
    "no such device",
    "CDI device",
)
_PORT: Final = ("port is already allocated", "address already in use")


class ContainerRuntime:
    """Containers named `fleetdeck-<owner>-<replica>` with our labels. The client is made at first need: it costs memory."""

    def __init__(self, owner: str, policy: Policy) -> None:
        self._owner = owner
        self._policy = policy
        self._client: Any = None

    def version(self) -> str:
        """Return the engine's name and version. Raises UnusableError."""
        if not self._policy.allow_containers:
            raise UnusableError("This machine's policy.toml has allow_containers = false.")
        client = self._connected()
        try:
            said = client.version(api_version=False)
        except Exception as error:
            self._client = None
            raise UnusableError(f"The Docker Engine API does not answer: {_sentence(error)}") from error
        parts = [
            part.get("Name", "") for part in said.get("Components") or [] if "podman" in part.get("Name", "").lower()
        ]
        return f"{'podman' if parts else 'docker'} {said.get('Version', '?')} (API {said.get('ApiVersion', '?')})"

    def prepare(self, order: ReplicaOrder, tell: Tell) -> str:
        """Have the image here; returns its id. Raises StartError."""
        if not order.image:
            raise StartError("pull_failed", "The order names no image.", is_permanent=True)
        client = self._client_for_start()
        image_id = pull.image_id(client, order.image)
        if image_id is None:
            pull.pull(client, order.image, tell)
            image_id = pull.image_id(client, order.image)
        if image_id is None:
            raise StartError("pull_failed", f"The image {order.image} is not here although it was pulled.")
        return image_id

    def start(self, order: ReplicaOrder, log: Path) -> None:  # noqa: ARG002 (what it says is fetched)
        """Create the container, read back what came of it, start it. Raises StartError."""
        client = self._client_for_start()
        with _as_start_errors():
            self.clear(order.id)
            labels = {
                OWNER_LABEL: self._owner,
                REPLICA_LABEL: str(order.id),
                GENERATION_LABEL: str(order.generation),
                "fleetdeck.endpoint": order.endpoint,
                "fleetdeck.revision": str(order.revision),
            }
            made = client.create_container(**creation(client, order, self._name(order.id), labels))
            seen = client.inspect_container(made["Id"])
            problem = mismatch(order, seen)
            if problem is not None:
                client.remove_container(made["Id"], v=True, force=True)
                raise problem
            try:
                client.start(made["Id"])
            except Exception:
                client.remove_container(made["Id"], v=True, force=True)
                raise

    def look(self, replica: int) -> Look | None:
        """Return what there is of one replica. Raises OSError when the engine does not answer."""
        seen = self._inspect(replica)
        if seen is None:
            return None
        state = seen["State"]
        is_running = bool(state.get("Running")) or state.get("Status") in {"running", "paused", "restarting"}
        return Look(
            generation=int(seen["Config"]["Labels"].get(GENERATION_LABEL, "0")),
            handle=f"container {self._name(replica)}",
            age_seconds=_age_seconds(state.get("StartedAt", "")),
            ended=None if is_running else _exit_of(state, seen["Id"]),
            is_frozen=bool(state.get("Paused")) or _is_stopped(state.get("Pid") or 0, seen["Id"]),
            pid=state.get("Pid") or None,
            image_id=seen.get("Image", ""),
        )

    def end(self, replica: int, *, is_hard: bool) -> None:
        """Send SIGTERM or SIGKILL to the container. Raises OSError when the engine does not answer."""
        seen = self._inspect(replica)
        if seen is None or not seen["State"].get("Running"):
            return
        with _as_os_errors():
            if seen["State"].get("Paused"):
                self._client.unpause(seen["Id"])
            self._client.kill(seen["Id"], signal="SIGKILL" if is_hard else "SIGTERM")

    def clear(self, replica: int) -> None:
        """Remove the container, which has ended. Raises OSError when the engine does not answer."""
        seen = self._inspect(replica)
        if seen is not None:
            with _as_os_errors():
                self._client.remove_container(seen["Id"], v=True, force=True)

    def ours(self) -> list[int]:
        """Return the replicas of which a container is here. Raises OSError."""
        with _as_os_errors():
            found = self._connected().containers(all=True, filters={"label": [f"{OWNER_LABEL}={self._owner}"]})
        labels = [container.get("Labels", {}).get(REPLICA_LABEL, "") for container in found]
        return [int(label) for label in labels if label.isdigit()]

    def fetch_log(self, replica: int, log: Path) -> None:
        """Add what the container said since the last time to the log file."""
        seen = self._inspect(replica)
        if seen is not None:
            with _as_os_errors():
                container_logs.fetch(self._client, seen["Id"], log)

    # ---- inside

    def _name(self, replica: int) -> str:
        return f"fleetdeck-{self._owner[:8]}-{replica}"

    def _connected(self) -> Any:
        """Return the client. Raises UnusableError."""
        if self._client is None:
            self._client = docker_socket.connect(self._policy.container_socket)
        return self._client

    def _client_for_start(self) -> Any:
        try:
            return self._connected()
        except UnusableError as error:
            raise StartError("no_runtime", str(error)) from error

    def _inspect(self, replica: int) -> Any:
        """Return our container of this replica, None when there is none; one of the same name without our label is not ours."""
        from docker.errors import NotFound

        with _as_os_errors():
            try:
                seen = self._connected().inspect_container(self._name(replica))
            except NotFound:
                return None
        labels = seen["Config"].get("Labels") or {}
        return seen if labels.get(OWNER_LABEL) == self._owner else None


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn what the client raises into OSError, which those who look expect."""
    try:
        yield
    except (OSError, StartError):
        raise
    except UnusableError as error:
        raise OSError(str(error)) from error
    except Exception as error:
        raise OSError(_sentence(error)) from error


@contextmanager
def _as_start_errors() -> Iterator[None]:
    """Turn what the client raises into the reason it stands for."""
    try:
        yield
    except StartError:
        raise
    except Exception as error:
        sentence = _sentence(error)
        if any(sign in sentence for sign in _NO_GPU):
            raise StartError("gpu_missing", sentence) from error
        if any(sign in sentence for sign in _PORT):
            raise StartError("port_in_use", sentence) from error
        raise StartError(
            "spawn_failed", sentence, is_permanent=getattr(error, "status_code", 0) in {400, 404, 409}
        ) from error


def _sentence(error: Exception) -> str:
    explanation = getattr(error, "explanation", None)
    return str(explanation or f"{type(error).__name__}: {error}")[:400]


def _exit_of(state: dict[str, Any], container: str) -> Exit:
    if state.get("Status") in {"created", "configured"}:
        return Exit(detail=f"The container was made and never ran. {state.get('Error', '')}".strip())
    code = int(state.get("ExitCode", 0))
    number = code - 128 if 128 < code < 160 else None
    is_too_big = state.get("OOMKilled") or (number == signal.SIGKILL and _did_kernel_kill(container))
    reason = "out_of_memory" if is_too_big else "exited"
    return Exit(None if number else code, number, reason, state.get("Error", "") or "")


def _is_stopped(pid: int, container: str) -> bool:
    """Say whether a container's process is stopped (SIGSTOP); False where its pid means nothing to this agent."""
    try:
        is_it = pid != 0 and container in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False
    return is_it and keeper.stat_fields(pid)[:1] == ["T"]


@lru_cache(maxsize=256)
def _did_kernel_kill(container: str) -> bool:
    """Say whether the kernel's log tells of a kill for memory in a container: not every engine notices one of a child."""
    return keeper.kernel_log_has(rb"oom-kill:.*" + container.encode())


def _age_seconds(stamp: str) -> float:
    """Return how long ago a time of the API (RFC 3339, nanoseconds) was, 0 for one that cannot be read."""
    head, _, rest = stamp.partition(".")
    zone = next((rest[place:] for place, sign in enumerate(rest) if sign in "Z+-"), "Z")
    try:
        at = datetime.fromisoformat(f"{head.rstrip('Z')}{'+00:00' if zone == 'Z' else zone}")
    except ValueError:
        return 0.0
    return max(time.time() - at.timestamp(), 0.0)
