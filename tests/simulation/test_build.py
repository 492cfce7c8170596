"""Building the simulated library."""

import ctypes
import shutil
import subprocess

import pytest

from fleet.simulation import workloads
from fleet.simulation.nvml import SimulationError, build, build_library
from fleet.simulation.nvml.layout import HostLayout


def test_python_and_c_agree_about_the_file(library):
    assert ctypes.CDLL(str(library)).fleetdeck_simulation_layout_size() == ctypes.sizeof(HostLayout)


def test_a_second_build_of_the_same_source_compiles_nothing(library, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_args, **_kwargs: pytest.fail("compiled again"))
    assert build_library(library.parent.parent) == library


def test_without_a_compiler_the_error_names_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(SimulationError, match="install gcc"):
        build_library(tmp_path)


def test_a_source_that_does_not_compile_is_an_error_with_the_compilers_words(tmp_path, monkeypatch):
    (tmp_path / "broken.c").write_text("int main(void) { return nothing; }")
    monkeypatch.setattr(build, "SOURCE", tmp_path)
    with pytest.raises(SimulationError, match="nothing"):
        build_library(tmp_path / "out")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_the_source_compiles_without_a_warning(tmp_path):
    for source in [*build.SOURCE.glob("*.c"), workloads.SOURCE]:
        flags = [flag for flag in build.FLAGS if flag.startswith(("-std", "-f", "-W")) and not flag.startswith("-Wl")]
        run = subprocess.run(
            ["gcc", *flags, "-c", "-o", str(tmp_path / "out.o"), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, ""), source.name


def test_the_legacy_library_lacks_what_came_after_the_470_driver(library, legacy_library):
    new, old = ctypes.CDLL(str(library)), ctypes.CDLL(str(legacy_library))
    for symbol in ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlGpmSampleGet"):
        assert hasattr(new, symbol)
        assert not hasattr(old, symbol)
    assert hasattr(old, "nvmlDeviceGetComputeRunningProcesses_v2")
