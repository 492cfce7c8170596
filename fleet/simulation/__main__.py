"""`python -m fleet.simulation run`: a simulated fleet of real agents, against a panel."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from fleet.simulation.nvml import SimulationError
from fleet.simulation.run import DemoFleet, Options


def parse(arguments: list[str]) -> Options:
    """Return the options; ends the program with a sentence when one is missing."""
    parser = argparse.ArgumentParser(prog="python -m fleet.simulation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the fleet until SIGTERM or Ctrl-C")
    run.add_argument("--panel", required=True, help="address of the panel, such as http://127.0.0.1:8000")
    run.add_argument("--data-dir", type=Path, required=True, help="where cards, agents' states and logs are kept")
    run.add_argument("--servers", type=int, default=6, help="how many servers (6 have 40 GPUs)")
    run.add_argument("--seed", type=int, default=1, help="the same seed gives the same fleet and the same noise")
    run.add_argument("--token-file", type=Path, help="file with an API token that may make join tokens")
    options = parser.parse_args(arguments)
    token = options.token_file.read_text().strip() if options.token_file else os.environ.get("FLEETDECK_DEMO_TOKEN", "")
    if not token:
        parser.error("an API token is needed: give --token-file, or FLEETDECK_DEMO_TOKEN in the environment")
    if options.servers < 1:
        parser.error("--servers must be 1 or more")
    return Options(
        panel_url=options.panel, token=token, directory=options.data_dir, servers=options.servers, seed=options.seed
    )


def say(line: str) -> None:
    """Tell people what goes on, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    options = parse(arguments)
    os.environ.pop("FLEETDECK_DEMO_TOKEN", None)  # the agents have tokens of their own
    try:
        asyncio.run(DemoFleet(options, say=say).run())
    except SimulationError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
