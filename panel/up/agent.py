"""This machine's own agent: joins through the panel's API with the token that `prepare` left, then becomes the agent.

Outside Django and outside the panel's database, like the agent of any other machine.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec

from fleet.agent.state import StateDirectory, StateError
from panel.up.datadir import read_json, replace_private

AGENT: Final = (sys.executable, "-m", "fleet.agent")


def join(panel_url: str, state_dir: Path, record_path: Path) -> None:
    """Join unless that is done, and note that it is. Ends the process when the panel refuses; the next try comes by itself."""
    record = read_json(record_path)
    if not isinstance(record, dict):
        sys.exit(f"There is no join token in {record_path}; starting the panel again makes one")
    if record.get("is_joined"):
        return
    command = (*AGENT, "join", "--replace", "--panel", panel_url, "--token", "-", "--state-dir", str(state_dir))
    done = subprocess.run(command, input=record["token"], text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"This machine could not join (code {done.returncode})")
    print(f"Joined {panel_url}", flush=True)
    replace_private(record_path, json.dumps({"join_token_id": record["join_token_id"], "is_joined": True}))


def follow(panel_url: str, state_dir: Path) -> None:
    """Let the agent report to where the panel listens now: its host or port may have changed since it joined."""
    state = StateDirectory(state_dir)
    identity = state.identity()
    if identity is not None and identity.panel_url != panel_url:
        state.write_identity(msgspec.structs.replace(identity, panel_url=panel_url))


def main() -> None:
    """Join, then run."""
    parser = argparse.ArgumentParser(prog="python -m panel.up.agent", description=__doc__)
    parser.add_argument("--panel", required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True, help="file with the join token, and whether it was used")
    options = parser.parse_args()
    join(options.panel, options.state_dir, options.record)
    try:
        follow(options.panel, options.state_dir)
    except StateError as error:
        sys.exit(str(error))
    os.execv(sys.executable, [*AGENT, "run", "--state-dir", str(options.state_dir)])  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main()
