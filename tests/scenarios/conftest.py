"""One panel for all scenarios of a run; each scenario joins a server of its own to it."""

import itertools
import shutil
import subprocess
import sys

import pytest

from fleet.simulation.nvml import SimulatedHost
from tests.scenarios.mixed import MixedRig
from tests.scenarios.running import ROOT, Panel, Story

SHARED = ROOT.parent / "shared" / "fake-nvml"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def panel(tmp_path_factory):
    with Panel(tmp_path_factory.mktemp("panel")) as running:
        yield running


@pytest.fixture(scope="session")
def mixed(panel, library, tmp_path_factory):
    """A server with a card for each story; tests that change a card put it back."""
    rig = MixedRig(panel, tmp_path_factory.mktemp("mixed"), library)
    yield rig
    rig.story.stop()


@pytest.fixture
def tell(panel, tmp_path):
    """Return a function that joins a server with this environment and starts its agent."""
    stories = []

    def begin(**environment):
        stories.append(Story(panel, f"rig-{next(_numbers):02d}", tmp_path, environment))
        return stories[-1]

    yield begin
    for story in stories:
        story.stop()


@pytest.fixture
def host(tmp_path):
    """An empty simulated server of our own library."""
    return SimulatedHost.create(tmp_path / "rig.nvml")


@pytest.fixture
def rig(tell, host, library):
    """Return a function that runs an agent on `host`, when its cards are in."""
    return lambda: tell(FLEETDECK_NVML_LIBRARY=str(library), FLEETDECK_SIMULATION_FILE=str(host.path))


@pytest.fixture(scope="session")
def shared_nvml(tmp_path_factory):
    """The build folder of the shared fake NVML, whose scenarios are files; skips with the reason where it cannot be had."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not here: its scenarios are not run")
    copy = tmp_path_factory.mktemp("shared") / "fake-nvml"
    shutil.copytree(SHARED, copy, copy_function=shutil.copyfile)
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    made = subprocess.run(
        ["make", "--directory", str(copy), f"PYTHON={sys.executable}", "all", "legacy"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        last = (made.stderr or made.stdout).strip().splitlines()[-1:]
        pytest.skip(f"the shared fake NVML could not be built (it needs gcc, make and nvidia-nvml-dev): {last}")
    return copy
