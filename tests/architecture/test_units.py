"""The units of systemd, as systemd itself reads them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.units import root_is_asked

ROOT = Path(__file__).resolve().parents[2]
ANALYZE = shutil.which("systemd-analyze")
MOST_EXPOSURE = 4.5  # of 10, by systemd's own reckoning; device files of GPUs and the network have to stay reachable

pytestmark = pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed: no unit was read by it")


def agent_unit(folder):
    root_is_asked(folder)
    printed = subprocess.run(
        ["sh", str(ROOT / "fleet/agent_package/install.sh"), "--print-unit"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
    )
    return printed.stdout


def panel_unit(_folder):
    return (ROOT / "deploy/fleetdeck.service").read_text()


@pytest.fixture(params=[agent_unit, panel_unit], ids=["agent", "panel"])
def unit(request, tmp_path):
    """The unit as a file, its Python being one that exists here."""
    path = tmp_path / "fleetdeck-test.service"
    path.write_text(re.sub(r"/opt/\S+/bin/python", sys.executable, request.param(tmp_path)))
    return path


def test_systemd_has_nothing_to_say_against_it(unit):
    read = subprocess.run([ANALYZE, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    said = [line for line in read.stderr.splitlines() if unit.name in line]
    assert (read.returncode, said) == (0, [])


def test_it_is_exposed_no_more_than_it_must_be(unit):
    command = [ANALYZE, "security", "--offline=true", "--no-pager", str(unit)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert float(exposure[1]) <= MOST_EXPOSURE, told
