"""As root, Postgres and Valkey run as a user of their own: Postgres refuses root, and neither has need of it."""

import os
import pwd
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from panel.up.errors import UpError

NAME: Final = "fleetdeck"
ACL: Final = "system.posix_acl_access"
# The layout of that attribute: version 2, then (tag, permission, id) each. linux/posix_acl_xattr.h
ACL_VERSION: Final = struct.Struct("<I")
ACL_ENTRY: Final = struct.Struct("<HHI")
USER_OWNER, USER, GROUP_OWNER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NOBODY_IN_PARTICULAR: Final = 0xFFFFFFFF
EXECUTE: Final = 1

Entry = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the operating system."""

    name: str
    uid: int
    gid: int


def service_account() -> Account | None:
    """Return the user for embedded services: None (our own) for an ordinary user, `fleetdeck` for root, made when missing.

    Raises UpError where it cannot be made.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(NAME)
    except KeyError:
        entry = _make()
    return Account(name=NAME, uid=entry.pw_uid, gid=entry.pw_gid)


def _make() -> pwd.struct_passwd:
    advice = "Run `make up` as an ordinary user, or set DATABASE_URL and REDIS_URL to servers that you run."
    if shutil.which("useradd") is None:
        raise UpError(f"Postgres refuses to run as root, and there is no useradd here to make a user for it. {advice}")
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", NAME]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UpError(f"The user {NAME!r} for Postgres could not be made: {done.stderr.strip()}. {advice}")
    return pwd.getpwnam(NAME)


def let_through(account: Account, target: Path) -> list[Path]:
    """Let `account` pass through every folder above `target`, and return the folders that had to be opened.

    Only this user gets in, and only to pass through (an access control list entry with x), so that /root stays closed
    to everybody else. Raises UpError where the file system keeps no such lists.
    """
    opened = []
    for folder in reversed(target.parents):
        if _passes(account, folder):
            continue
        try:
            _grant(account, folder)
        except OSError as error:
            raise UpError(
                f"{target} has to be reachable for the user {account.name!r} (Postgres refuses to run as root), and "
                f"{folder} is closed to it ({error.strerror}). Run `make up` as an ordinary user, use a folder that "
                f"others can pass through (FLEETDECK_DATA_DIR), or run: chmod o+x {folder}"
            ) from error
        opened.append(folder)
    return opened


def _passes(account: Account, folder: Path) -> bool:
    status = folder.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & 0o100)
    entries = _entries(folder)
    named = [permission for tag, permission, who in entries if tag == USER and who == account.uid]
    mask = next((permission for tag, permission, _ in entries if tag == MASK), 0o7)
    if named:
        return bool(named[0] & mask & EXECUTE)
    if status.st_gid == account.gid:
        return bool(status.st_mode & 0o010)
    return bool(status.st_mode & 0o001)


def _entries(folder: Path) -> list[Entry]:
    """Return the access control list of a folder; the one that its mode means when it has none."""
    try:
        raw = os.getxattr(folder, ACL)
    except OSError:
        mode = folder.stat().st_mode
        parts = ((USER_OWNER, mode >> 6), (GROUP_OWNER, mode >> 3), (OTHER, mode))
        return [(tag, permission & 0o7, NOBODY_IN_PARTICULAR) for tag, permission in parts]
    return [ACL_ENTRY.unpack_from(raw, offset) for offset in range(ACL_VERSION.size, len(raw), ACL_ENTRY.size)]


def _grant(account: Account, folder: Path) -> None:
    entries = [entry for entry in _entries(folder) if entry[0] != MASK and entry[:1] + entry[2:] != (USER, account.uid)]
    entries.append((USER, EXECUTE, account.uid))
    widest = 0
    for tag, permission, _ in entries:
        if tag in (USER, GROUP_OWNER, GROUP):
            widest |= permission
    entries.append((MASK, widest, NOBODY_IN_PARTICULAR))
    entries.sort(key=lambda entry: (entry[0], entry[2]))
    os.setxattr(folder, ACL, ACL_VERSION.pack(2) + b"".join(ACL_ENTRY.pack(*entry) for entry in entries))


def can_run(account: Account, program: Path) -> bool:
    """Whether `account` can run `program`, tried as that user."""
    command = [str(program), "--version"]
    try:
        done = subprocess.run(
            command, user=account.uid, group=account.gid, extra_groups=[], capture_output=True, check=False, cwd="/"
        )
    except OSError:
        return False
    return done.returncode == 0
