"""Become a supervised child, then exec the real program: `launch.py PARENT DEATH_SIGNAL UID:GID|- COMMAND…`.

The kernel is asked to send DEATH_SIGNAL when the supervisor dies (kill -9 included), so that nothing outlives it. A
program of its own without imports from the project: a child costs milliseconds, not the panel's start-up time, and the
request is made after the change of user, which would clear it.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def become(account: str) -> None:
    """Drop to `uid:gid`, without any other group."""
    uid, gid = (int(part) for part in account.split(":"))
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def main(parent: int, death_signal: int, account: str, command: list[str]) -> None:
    """Replace this process by `command`."""
    if account != "-":
        become(account)
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request was made
        sys.exit(1)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs would inherit that
    try:
        os.execvp(command[0], command)  # noqa: S606  # no shell is wanted
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
