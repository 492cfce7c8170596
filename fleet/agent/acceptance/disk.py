"""The disk below a directory: what it is, and how fast a file is read from it in one go, past the cache."""

import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fleet.agent.acceptance.found import DiskFound

FILE_BYTES: Final = 256 * 1024 * 1024
BLOCK_BYTES: Final = 4 * 1024 * 1024
SMALLEST_FILE_BYTES: Final = 32 * 1024 * 1024
# The file takes a quarter of what is free at most.
FREE_SHARE: Final = 4
WRITE_SECONDS: Final = 12.0
READ_SECONDS: Final = 8.0
NETWORK: Final = ("nfs", "cifs", "smb", "ceph", "lustre", "gluster", "beegfs", "9p", "fuse", "virtiofs", "gpfs", "afs")


@dataclass(frozen=True, slots=True)
class _Mount:
    filesystem: str
    device: str  # major:minor


def read_disk(directory: Path, *, file_bytes: int = FILE_BYTES) -> DiskFound:
    """Write a file, read it back past the cache, remove it; every figure is optional."""
    found = DiskFound(directory=str(directory)[:300])
    mount = _mount_of(directory)
    if mount is None:
        found.missing["kind"] = "not_known"
    else:
        found.filesystem = mount.filesystem[:32]
        found.kind, reason = disk_kind(mount.filesystem, mount.device)
        if reason:
            found.missing["kind"] = reason
    try:
        space = os.statvfs(directory)
    except OSError:
        found.missing["read"] = "no_permission"
        return found
    found.total_bytes = space.f_blocks * space.f_frsize
    size = min(file_bytes, space.f_bavail * space.f_frsize // FREE_SHARE) // BLOCK_BYTES * BLOCK_BYTES
    if size < min(SMALLEST_FILE_BYTES, file_bytes):
        found.missing["read"] = "no_space"
        return found
    _measure(directory, size, found)
    return found


def _mount_of(directory: Path, mounts: Path = Path("/proc/self/mountinfo")) -> _Mount | None:
    """Return the mount that a directory lies on: the longest mount point that is one of its parents, the newest of those."""
    try:
        place, lines = directory.resolve(), mounts.read_text().splitlines()
    except OSError:
        return None
    best: tuple[int, _Mount] | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")[0]
        point = Path(fields[4].encode().decode("unicode_escape"))
        if place.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = len(point.parts), _Mount(kind, fields[2])
    return best[1] if best else None


def disk_kind(filesystem: str, device: str, devices: Path = Path("/sys/dev/block")) -> tuple[str, str]:
    """Return the kind, or an empty one and why it is not known. device: `major:minor`."""
    if filesystem.startswith(NETWORK):
        return "network", ""
    if filesystem in {"tmpfs", "ramfs"}:
        return "memory", ""
    if filesystem in {"overlay", "aufs"}:
        return "", "in_container"
    return _kind_of_block_device(devices / device)


def _kind_of_block_device(device: Path) -> tuple[str, str]:
    try:
        block = device.resolve(strict=True)
        if (block / "partition").exists():
            block = block.parent
        is_rotational = (block / "queue/rotational").read_text().strip() == "1"
    except OSError:
        return "", "not_known"
    for names, kind in ((("nvme",), "nvme"), (("vd", "xvd", "dm-", "md", "loop"), "virtual")):
        if block.name.startswith(names):
            return kind, ""
    return ("rotational" if is_rotational else "ssd"), ""


def _measure(directory: Path, size: int, found: DiskFound) -> None:
    file = directory / f".acceptance-{os.getpid()}"
    try:
        size = _write(file, size)
        found.read_bytes_per_second, found.bytes_read, found.method = _read(file, size)
    except OSError:
        found.missing["read"] = "no_permission"
    finally:
        file.unlink(missing_ok=True)


def _write(file: Path, size: int) -> int:
    """Write the file through to the disk; returns how much of it there was time for."""
    block = os.urandom(BLOCK_BYTES)
    began, written = time.monotonic(), 0
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        while written < size and (time.monotonic() - began < WRITE_SECONDS or written < BLOCK_BYTES):
            written += os.write(descriptor, block)
            os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return written // BLOCK_BYTES * BLOCK_BYTES


def _read(file: Path, size: int) -> tuple[float, int, str]:
    """Return bytes per second, bytes, and how the cache was avoided."""
    try:
        descriptor, method = os.open(file, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC), "direct"
        try:
            return (*_read_through(descriptor, size), method)
        finally:
            os.close(descriptor)
    except OSError:  # this file system has no reading past the cache
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        return (*_read_through(descriptor, size), "cached" if _is_memory(file) else "dropped")
    finally:
        os.close(descriptor)


def _read_through(descriptor: int, size: int) -> tuple[float, int]:
    """Return bytes per second and bytes; the buffer is whole pages, as O_DIRECT wants it."""
    began, done = time.perf_counter(), 0
    with mmap.mmap(-1, BLOCK_BYTES) as buffer:
        while done < size and time.perf_counter() - began < READ_SECONDS:
            count = os.preadv(descriptor, [buffer], done)
            if count <= 0:
                break
            done += count
    took = time.perf_counter() - began
    return done / max(took, 1e-9), done


def _is_memory(file: Path) -> bool:
    """Say whether the file's disk is memory, of which no cache can be dropped."""
    mount = _mount_of(file.parent)
    return mount is not None and mount.filesystem in {"tmpfs", "ramfs"}
