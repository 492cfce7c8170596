"""A job's own process: reads a task, says how far it is, and what came of it. Started by the agent, not by people."""

import logging
import os
import sys
from typing import Final

import msgspec

from fleet.agent.jobs.child import end_with_parent, lower_priority
from fleet.agent.jobs.kinds import KINDS
from fleet.agent.jobs.task import Said, Task

# Load that comes late because others went first would prove nothing.
PUNCTUAL: Final = frozenset({"load"})


def _say(said: Said) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def main() -> int:
    """Do the task on standard input; returns the exit status."""
    end_with_parent()
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    if task.kind not in PUNCTUAL:
        lower_priority()
    result = KINDS[task.kind]()(task, lambda percent, step: _say(Said(percent=percent, step=step)))
    _say(Said(percent=100, result=msgspec.to_builtins(result)))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # a thread that a dead driver holds would keep the process
