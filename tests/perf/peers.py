"""VictoriaMetrics and Prometheus beside us, on loopback, from their Debian packages; named as missing when not installed."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from tests.perf.live_bench import free_port

VICTORIA = shutil.which("victoria-metrics")
PROMTOOL = shutil.which("promtool")
MISSING = "{} is not installed (Debian package {}): not measured"


class Victoria:
    """One VictoriaMetrics with an empty directory."""

    def __init__(self, process, port, data):
        url = f"http://127.0.0.1:{port}"
        self.process, self.port, self.data = process, port, data
        self.client = httpx.Client(base_url=url, timeout=120)

    def fill(self, name, labels, at_ms, values):
        """Import one series."""
        line = {"metric": {"__name__": name, **labels}, "values": values.tolist(), "timestamps": at_ms.tolist()}
        self.client.post("/api/v1/import", content=json.dumps(line)).raise_for_status()

    def settle(self):
        """Bring everything to disk, merged as far as it goes."""
        self.client.get("/internal/force_flush").raise_for_status()
        self.client.get("/internal/force_merge").raise_for_status()
        self.client.get("/internal/force_flush").raise_for_status()
        size = -1
        while size != (size := self.size_bytes()):
            time.sleep(1)  # merging goes on in the background and tells nobody when it ends

    def size_bytes(self):
        """Return the bytes of its data, without the index of names."""
        return directory_bytes(self.data / "data")


def directory_bytes(path):
    """Return the bytes of all files below; what goes away meanwhile does not count."""
    total = 0
    for folder, _folders, files in os.walk(path):
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(folder) / file).stat().st_size
    return total


@contextlib.contextmanager
def victoria():
    """Run one, or yield None when it is not installed."""
    if VICTORIA is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="fleetdeck-victoria-") as directory:
        port = free_port()
        command = [
            VICTORIA,
            f"-storageDataPath={directory}",
            f"-httpListenAddr=127.0.0.1:{port}",
            "-retentionPeriod=10y",
        ]
        command += ["-search.latencyOffset=0s", "-search.disableCache", "-loggerLevel=ERROR"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peer = Victoria(process, port, Path(directory))
        try:
            wait_for(peer.client, process)
            yield peer
        finally:
            peer.client.close()
            process.terminate()
            process.wait(30)


def wait_for(client, process, seconds=30):
    """Wait until the server answers. Raises RuntimeError when it ended, TimeoutError when it does not answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode}")
        with contextlib.suppress(httpx.TransportError):
            if client.get("/health").status_code == 200:
                return
        time.sleep(0.1)
    raise TimeoutError("the peer does not answer")


def prometheus_bytes(series):
    """Return the bytes of Prometheus' own blocks of these series, [(name, labels, at_ms, values)]; None when missing."""
    if PROMTOOL is None:
        return None
    with tempfile.TemporaryDirectory(prefix="fleetdeck-prometheus-") as directory:
        page = Path(directory) / "page.txt"
        with page.open("w") as file:
            for name, labels, at_ms, values in series:
                tags = ",".join(f'{key}="{value}"' for key, value in labels.items())
                file.write(f"# TYPE {name} gauge\n")
                file.writelines(
                    f"{name}{{{tags}}} {value} {at / 1000:.3f}\n"
                    for at, value in zip(at_ms.tolist(), values.tolist(), strict=True)
                )
            file.write("# EOF\n")
        out = Path(directory) / "blocks"
        command = [
            PROMTOOL,
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "--max-block-duration=24h",
            str(page),
            str(out),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return sum(directory_bytes(path) for path in out.glob("*/chunks"))
