"""Keeps one engine process, in a small process of its own that outlives the agent: `python -I -S keeper.py`, told on its stdin.

It starts the engine in a session of its own, keeps its log within bounds, holds its memory limit, and writes down which process
it is and how it ended, so that an agent that was away learns the exit status too. When the engine has ended, what it left
behind is ended with it. Standard library alone, and little of it: it stays as long as the engine does.
"""

import json
import os
import re
import resource
import signal
import sys
import time
from typing import Any, Final

# pathlib would be a tenth of what this process keeps in memory.
# ruff: noqa: PTH105, PTH123, PTH202, PTH208

LOG_BYTES: Final = 8 << 20
LOOK_SECONDS: Final = 1.0
MEMORY_EVERY: Final = 2  # looks
REPLICA_VARIABLE: Final = "FLEETDECK_REPLICA"
OUT_OF_MEMORY: Final = "out_of_memory"


def main() -> None:
    """Start the engine of the order on stdin and stay until it has ended."""
    order = json.loads(sys.stdin.buffer.read())
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    kills = oom_kills()
    pid, error = spawn(order)
    started_ms = time.time_ns() // 1_000_000
    if error:
        write(order["exit_file"], {"nonce": order["nonce"], "spawn_error": error, "ended_at_ms": started_ms})
        return
    run = {
        "nonce": order["nonce"],
        "generation": order["generation"],
        "boot_id": boot_id(),
        "engine": [pid, start_ticks(pid)],
        "keeper": [os.getpid(), start_ticks(os.getpid())],
        "started_at_ms": started_ms,
    }
    try:
        write(order["run_file"], run)
    except OSError:  # a full disk: an engine that nobody can find again must not stay
        os.killpg(pid, signal.SIGKILL)
        end_marked(order["marker"])
        raise
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    status, was_too_big = watch(pid, order)
    end_marked(order["marker"])
    is_signal = os.WIFSIGNALED(status)
    number: int | None = os.WTERMSIG(status) if is_signal else None
    reason = OUT_OF_MEMORY if was_too_big else ""
    if number == signal.SIGKILL and not reason and (oom_kills() > kills or was_killed_by_kernel(pid)):
        reason = OUT_OF_MEMORY
    ended = {
        "nonce": order["nonce"],
        "code": None if is_signal else os.WEXITSTATUS(status),
        "signal": number,
        "reason": reason,
        "ended_at_ms": time.time_ns() // 1_000_000,
    }
    write(order["exit_file"], ended)


def spawn(order: dict[str, Any]) -> tuple[int, str]:
    """Start the engine; returns (pid, what went wrong)."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(order)
        except OSError as error:
            name = os.fsdecode(error.filename) if error.filename else order["argv"][0]  # exec gives it as bytes
            os.write(tell, f"{name}: {error.strerror}".encode()[:400])
        except (TypeError, ValueError) as error:
            os.write(tell, repr(error).encode()[:400])
        finally:
            os._exit(127)
    os.close(tell)
    problem = os.read(told, 500).decode(errors="replace")
    os.close(told)
    if problem:
        os.waitpid(pid, 0)
    return pid, problem


def become(order: dict[str, Any]) -> None:
    """Turn this process into the engine."""
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD, signal.SIGTERM})
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the memory of an engine fills a disk
    os.chdir(order["directory"])
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.execvpe(order["argv"][0], order["argv"], order["environment"])  # noqa: S606 (no shell is wanted)


def watch(pid: int, order: dict[str, Any]) -> tuple[int, bool]:
    """Stay until the engine has ended; returns (its wait status, whether it was ended for its memory)."""
    limit = order.get("memory_limit_bytes")
    was_too_big, looks = False, 0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status, was_too_big
        woken = signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, LOOK_SECONDS)
        if woken is not None:
            if woken.si_signo == signal.SIGTERM:
                os.kill(pid, signal.SIGTERM)
            continue
        looks += 1
        rotate(order["log"], LOG_BYTES)
        if limit and looks % MEMORY_EVERY == 0 and memory_bytes(pid) > limit:
            was_too_big = True
            os.killpg(pid, signal.SIGKILL)


def rotate(path: str, max_bytes: int) -> bool:
    """Move a log that has grown beyond its bound aside as `.1`, and note in `.base` how many bytes were moved so far.

    The engine goes on writing into the same file, which is why it is copied and cut instead of renamed.
    """
    try:
        if os.path.getsize(path) <= max_bytes:
            return False
        with open(path, "rb") as source, open(f"{path}.1", "wb") as target:
            os.fchmod(target.fileno(), 0o600)
            size = 0
            while block := source.read(1 << 20):
                target.write(block)
                size += len(block)
        write(f"{path}.base", base_of(path) + size)
        os.truncate(path, 0)
    except OSError:
        return False
    return True


def base_of(path: str) -> int:
    """Return how many bytes of a log lie before its present file."""
    try:
        with open(f"{path}.base", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def write(path: str, value: object) -> None:
    """Write JSON, whole or not at all."""
    aside = f"{path}.new"
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(value, file)
    os.replace(aside, path)


def boot_id() -> str:
    """Return the kernel's name of this run of the operating system."""
    return _text("/proc/sys/kernel/random/boot_id").strip()


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name (state first), an empty list when there is no such process."""
    return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def start_ticks(pid: int) -> int:
    """Return when a process started, in ticks since boot, 0 when there is none: with its pid that names it."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def age_seconds(ticks: int) -> float:
    """Return how long ago a process started, by the clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    """Return the memory of a process and its descendants that is theirs: anonymous and shared memory, no file caches."""
    total, waiting = 0, [pid]
    while waiting:
        process = waiting.pop()
        waiting += [int(child) for child in _text(f"/proc/{process}/task/{process}/children").split()]
        status = _text(f"/proc/{process}/status")
        total += sum(
            int(number) << 10 for number in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", status, re.MULTILINE)
        )
    return total


def marked(marker: str) -> list[int]:
    """Return the processes that were started with a marker in their environment, this one left out."""
    wanted = f"{REPLICA_VARIABLE}={marker}\0".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in b"\0" + file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


def end_marked(marker: str) -> None:
    """Kill what carries a marker, until nothing does; a process that the kernel holds is left after a while."""
    for _ in range(20):
        pids = marked(marker)
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.05)


def oom_kills() -> int:
    """Return how many processes the kernel killed for memory in this cgroup, 0 when it does not tell."""
    paths = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            paths.add(f"/sys/fs/cgroup{path.rstrip('/')}/memory.events")
        elif "memory" in controllers.split(","):
            paths.add(f"/sys/fs/cgroup/memory{path.rstrip('/')}/memory.oom_control")
    return sum(int(number) for path in paths for number in re.findall(r"^oom_kill (\d+)", _text(path), re.MULTILINE))


def was_killed_by_kernel(pid: int) -> bool:
    """Say whether the kernel's log tells of killing this process for memory; False where it cannot be read."""
    return kernel_log_has(rb"Killed process %d\b" % pid)


def kernel_log_has(pattern: bytes) -> bool:
    """Say whether a line of the kernel's log matches; False where it cannot be read."""
    wanted = re.compile(pattern)
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    is_told = False
    try:
        while not is_told:
            is_told = wanted.search(os.read(descriptor, 8_192)) is not None
    except OSError:
        pass  # nothing more to read
    finally:
        os.close(descriptor)
    return is_told


def _text(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
