"""Building the simulated library with the machine's C compiler, once per version of its source."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from fleet.simulation.nvml.layout import SimulationError

SOURCE: Final = Path(__file__).parent
NAME: Final = "libnvidia-ml.so.1"
FLAGS: Final = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-shared",
    f"-Wl,-soname,{NAME}",
)


def build_library(directory: Path, *, legacy: bool = False) -> Path:
    """Return the path of the built library below `directory`, building it when this version is not there yet.

    legacy: without the symbols that came after the r470 branch of the driver.
    Several processes may build at once: each builds aside and moves its result into place.
    Raises SimulationError when there is no C compiler or the source does not compile.
    """
    flags = (*FLAGS, f"-Wl,--version-script={SOURCE / 'legacy.map'}") if legacy else FLAGS
    target = directory / f"{_fingerprint()}{'-legacy' if legacy else ''}" / NAME
    if target.exists():
        return target
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SimulationError("The simulated NVML needs a C compiler: install gcc and libc6-dev.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        built = Path(aside) / NAME
        _compile(compiler, flags, built)
        built.replace(target)  # atomic: another process may have been first
    return target


def _compile(compiler: str, flags: tuple[str, ...], target: Path) -> None:
    sources = sorted(str(path) for path in SOURCE.glob("*.c"))
    run = subprocess.run(
        [compiler, *flags, "-o", str(target), *sources, "-lpthread"], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise SimulationError(f"{compiler} could not build the simulated NVML: {run.stderr.strip()[-2000:]}")


def _fingerprint() -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sorted(SOURCE.iterdir()):
        if path.suffix in {".c", ".h", ".def", ".map"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
