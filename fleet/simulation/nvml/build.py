"""Building the simulated library with the machine's C compiler, once per version of its source."""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
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
    if not target.exists():
        compile_c(sorted(SOURCE.glob("*.c")), target, *flags, "-lpthread")
    return target


def find_compiler() -> str:
    """Return the path of a C compiler that has its headers. Raises SimulationError."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is not None:
        command = [compiler, "-E", "-x", "c", "-"]
        if subprocess.run(command, input=b"#include <pthread.h>\n", capture_output=True, check=False).returncode == 0:
            return compiler
    raise SimulationError(
        "The simulated fleet needs a C compiler with its headers: install gcc and libc6-dev (Debian: apt install gcc"
        " libc6-dev), and start again."
    )


def compile_c(sources: Iterable[Path], target: Path, *flags: str) -> None:
    """Compile and link C files into `target`, which is whole or not there. Raises SimulationError."""
    compiler = find_compiler()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as aside:
        built = Path(aside) / target.name
        command = [compiler, "-o", str(built), *map(str, sources), *flags]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise SimulationError(f"{compiler} could not build {target.name}: {run.stderr.strip()[-2000:]}")
        built.replace(target)  # atomic: another process may have been first


def _fingerprint() -> str:
    digest = hashlib.sha256(" ".join(FLAGS).encode())
    for path in sorted(SOURCE.iterdir()):
        if path.suffix in {".c", ".h", ".def", ".map"}:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
