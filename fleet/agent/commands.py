"""What people type: join, leave, status, once."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from fleet.agent import clock, panel
from fleet.agent.gateway.door import end_gateway
from fleet.agent.panel import PanelClient, PanelError, TokenRefusedError
from fleet.agent.policy import Policy
from fleet.agent.state import Identity, StateDirectory, Status, command_line

STOP_SECONDS: Final = 20.0
STOP_ENGINES_SECONDS: Final = 40.0
LOOK_FOR: Final = "docker ps --filter label=fleetdeck.agent, and grep -l FLEETDECK_REPLICA /proc/[0-9]*/environ"
ONCE_SECONDS: Final = 1.0


def join(state: StateDirectory, options: argparse.Namespace) -> int:
    """Use up a join token and keep the agent's own."""
    problem = _panel_problem(options.panel)
    if problem:
        return _fail(problem)
    is_gateway = options.role == "gateway"
    if is_gateway and not 0 < options.gateway_port < 65_536:
        return _fail(f"{options.gateway_port} is no port: it is between 1 and 65535.")
    state.prepare()
    earlier = state.identity()
    if earlier is not None and not options.replace:
        return _fail(
            f"This machine reports to {earlier.panel_url} as {earlier.server_name} already."
            f" Leave it first ({command_line('leave', state.path)}), or join with --replace."
        )
    if not state.try_lock():
        return _fail(f"An agent runs with {state.path} (process {state.running_pid()}): stop it first.")
    token = sys.stdin.readline().strip() if options.token == "-" else options.token  # noqa: S105 (a dash is no password)
    ca_file = str(Path(options.ca_file).resolve()) if options.ca_file else ""
    try:
        answer = panel.join(
            options.panel,
            token,
            name=options.name,
            ca_file=ca_file,
            gateway_port=options.gateway_port if is_gateway else None,
        )
    except PanelError as error:
        return _fail(f"{options.panel} does not let this machine join: {error}")
    if earlier is not None:
        _stop_engines(state)  # another membership's orders: this one's may have the same numbers
    state.forget_spool()  # what an earlier server's agent left unsent is not this one's
    end_gateway(state)
    state.write_identity(
        Identity(
            panel_url=options.panel.rstrip("/"),
            agent_token=answer.agent_token,
            server_id=answer.server_id,
            server_name=answer.server_name,
            sample_interval_seconds=answer.sample_interval_seconds,
            report_interval_seconds=answer.report_interval_seconds,
            name=options.name,
            ca_file=ca_file,
            is_gateway=is_gateway,
        )
    )
    _say(f"Joined {options.panel} as {answer.server_name}. Now run: {command_line('run', state.path)}")
    return 0


def leave(state: StateDirectory, *, is_forced: bool) -> int:
    """Stop the running agent, end its token, forget the panel."""
    identity = state.identity()
    if identity is None:
        return _fail("This machine has not joined a panel.")
    if not _stop_running(state):
        return _fail(f"The running agent (process {state.running_pid()}) does not stop: end it first.")
    client = PanelClient(identity.panel_url, identity.agent_token, identity.ca_file)
    try:
        client.leave()
    except TokenRefusedError:
        _say("The panel had forgotten this agent already.")
    except PanelError as error:
        if not is_forced:
            return _fail(f"{identity.panel_url} could not be told: {error} Try again, or use --force.")
        _say(f"{identity.panel_url} could not be told ({error}): retire the server {identity.server_name} there.")
    finally:
        client.close()
    end_gateway(state)
    _stop_engines(state)
    state.forget()
    _say(f"Left {identity.panel_url}; {state.path} keeps nothing but the policy.")
    return 0


def _stop_engines(state: StateDirectory) -> None:
    """Stop what this agent runs for its panel, and say so."""
    if not state.engines_path.exists():
        return
    from fleet.agent.engines.reconcile import Engines
    from fleet.agent.policy import PolicyError, load_policy

    try:
        policy = load_policy(state.policy_path)
    except PolicyError:
        policy = Policy()
    stopped, left = Engines(state.engines_path, policy, None).stop_all(STOP_ENGINES_SECONDS)
    if stopped:
        _say(f"Stopped {stopped} engine{'s' if stopped > 1 else ''} that ran here for the panel.")
    if left:
        _say(f"{left} did not stop within {STOP_ENGINES_SECONDS:.0f} s: look for them with {LOOK_FOR}.")


def status(state: StateDirectory, *, is_json: bool) -> int:
    """Say how the agent is; the exit status is 0 when it runs and the panel acknowledges its reports."""
    identity, said, pid = state.identity(), state.status(), state.running_pid()
    is_well = pid is not None and said is not None and not said.last_error
    if is_json:
        facts = {
            "panel": identity.panel_url if identity else None,
            "server": identity.server_name if identity else None,
            "pid": pid,
            "status": msgspec.to_builtins(said) if said else None,
        }
        _say(msgspec.json.encode(facts).decode())
    elif identity is None:
        _say("This machine has not joined a panel.")
    else:
        _say(f"Panel    {identity.panel_url}\nServer   {identity.server_name}")
        _say(f"Agent    {f'runs as process {pid}' if pid else 'does not run'}")
        if said is not None:
            _say(_describe(said))
    return 0 if is_well else 1


def once(state: StateDirectory) -> int:
    """Print one reading of everything; works without having joined."""
    from fleet.agent.faults.ledger import FaultLedger
    from fleet.agent.host.facts import read_host_facts
    from fleet.agent.host.samples import HostSampler
    from fleet.agent.nvml.driver import DriverWatch
    from fleet.agent.policy import load_policy
    from fleet.agent.runtime import collect, read_options

    policy = load_policy(state.policy_path) if state.policy_path.exists() else Policy()
    driver, host = DriverWatch(read_options(policy), FaultLedger()), HostSampler()
    first = collect(driver, host)
    time.sleep(ONCE_SECONDS)  # rates and means need two readings
    second = collect(driver, host)
    for before, after in zip(first.gpus, second.gpus, strict=False):
        if before.uuid == after.uuid:
            after.health, after.processes = before.health or after.health, before.processes or after.processes
            after.processes_visibility = before.processes_visibility or after.processes_visibility
    reading = {
        "driver": second.driver,
        "gpus": [_with_names(gpu) for gpu in second.gpus],
        "host": read_host_facts(),
        "host_sample": _named(second.host),
    }
    driver.close()
    _say(msgspec.json.format(msgspec.json.encode(reading)).decode())
    return 0


def _named(sample: msgspec.Struct) -> dict[str, object]:
    """Return a sample, which travels as a list, with the names of its readings."""
    return {name: getattr(sample, name) for name in sample.__struct_fields__}


def _with_names(gpu: object) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(gpu, name) for name in gpu.__dataclass_fields__}  # type: ignore[attr-defined]
    if isinstance(values["sample"], msgspec.Struct):
        values["sample"] = _named(values["sample"])
    return values


def _panel_problem(url: str) -> str:
    """Return what is wrong with a panel's address, empty when nothing is."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return f"{url} is no address of a panel: it starts with https:// or http://."
    if parts.username or parts.password or parts.query or parts.fragment:
        return "The panel's address has no user, password, query or fragment."
    if parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        sys.stderr.write(f"Warning: {url} is not encrypted: tokens and reports can be read on the way.\n")
    return ""


def _stop_running(state: StateDirectory) -> bool:
    """End the agent that runs with this state and take its place; returns whether it did end."""
    deadline = time.monotonic() + STOP_SECONDS
    is_told = False
    while not state.try_lock():
        pid = state.running_pid()
        if pid is not None and not is_told:
            os.kill(pid, signal.SIGTERM)
            is_told = True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.2)
    return True


def _describe(said: Status) -> str:
    age = (clock.now().at_ms - said.at_ms) / 1000
    well = sum(card == "ok" for card in said.gpus.values())
    cards = ", ".join(
        [f"{well} of {len(said.gpus)} ok", *(f"{uuid} {card}" for uuid, card in said.gpus.items() if card != "ok")]
    )
    lines = [
        f"As of    {age:.0f} s ago",
        f"Driver   {said.driver_state}{f': {said.driver_detail}' if said.driver_detail else ''}",
        f"GPUs     {cards}",
        f"Waiting  {said.spooled_batches} batches; lost {said.lost_samples} samples, {said.refused_batches} batches refused",
        f"Panel    acknowledged {said.seconds_since_acknowledged:.0f} s before that",
    ]
    return "\n".join([*lines, f"Error    {said.last_error}"] if said.last_error else lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _fail(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1
