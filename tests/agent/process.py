"""The agent as a process of its own, reading a simulated server."""

import os
import signal
import subprocess
import sys


class Process:
    """One run of the agent on a state directory."""

    def __init__(self, state, host, library, bytecode):
        self._log = state.path / "log"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fleet.agent", "run", "--state-dir", str(state.path)],
            env={
                **os.environ,
                "FLEETDECK_NVML_LIBRARY": str(library),
                "FLEETDECK_SIMULATION_FILE": str(host.path),
                "FLEETDECK_KERNEL_LOG": "",
                "PYTHONDONTWRITEBYTECODE": "",
                "PYTHONPYCACHEPREFIX": str(bytecode),
            },
            stderr=self._log.open("a"),
        )

    @property
    def log(self):
        return self._log.read_text()

    @property
    def pid(self):
        return self._process.pid

    def is_running(self):
        return self._process.poll() is None

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self):
        """End it as a supervisor does; returns the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(20)
