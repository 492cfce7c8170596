"""Processes that stand in for the programs on simulated cards, so that the agent finds a name and a user for their pids."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from fleet.simulation.nvml.build import compile_c

SOURCE: Final = Path(__file__).with_name("workload.c")
STOP_SECONDS: Final = 3.0


class Workloads:
    """Starts one small process per program and ends them all. A process is named by the file that it was started from."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._program: Path | None = None

    def start(self, name: str) -> int:
        """Start a process of this name; return its pid."""
        program = self._directory / name.replace("/", "_")
        if not program.exists():
            shutil.copy(self._built(), program)
        process = subprocess.Popen(
            [name, str(os.getpid())],
            executable=program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(process)
        return process.pid

    def stop(self) -> None:
        """End every process that was started here."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _built(self) -> Path:
        if self._program is None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._program = self._directory / "workload"
            compile_c([SOURCE], self._program)
        return self._program
