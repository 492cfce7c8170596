"""Who else probes: blackbox_exporter and curl, against the same server; named as missing when they are not installed.

Each peer measures (errors in ms over the true hold, CPU seconds) for probes one after the other, paced, and many at once.
"""

import asyncio
import contextlib
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from tests.perf.probes_server import HOLD_SECONDS
from tests.waiting import eventually, free_port

BLACKBOX = shutil.which("prometheus-blackbox-exporter") or shutil.which("blackbox_exporter")
CURL = shutil.which("curl")
MODULES = """\
modules:
  hold:
    prober: http
    timeout: 30s
    http:
      preferred_ip_protocol: ip4
      follow_redirects: false
      enable_http2: false
      tls_config: {insecure_skip_verify: true}
"""
AT_ONCE = {"50 at once": 50, "200 at once": 200}
DURATION = re.compile(rb"^probe_duration_seconds (\S+)", re.MULTILINE)
SUCCESS = re.compile(rb"^probe_success 1$", re.MULTILINE)


def added_ms(seconds):
    """Return what a measurement adds to the true hold, in ms."""
    return (seconds - HOLD_SECONDS) * 1000


async def paced(one, count, rate):
    """Start `one()` at a steady rate, whatever becomes of those before; returns what all returned."""
    loop, begin, tasks = asyncio.get_running_loop(), time.monotonic(), []
    for number in range(count):
        wait = begin + number / rate - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(loop.create_task(one()))
    return await asyncio.gather(*tasks)


async def in_mode(mode, one, count):
    """Probe `count` times: `alone` one after the other, `paced` at 200/s, else so many at once as AT_ONCE says."""
    if mode == "alone":
        return [await one() for _ in range(count)]
    if mode == "paced":
        return await paced(one, count, 200)
    found, width = [], AT_ONCE[mode]
    for _ in range(count // width):
        found += await asyncio.gather(*[one() for _ in range(width)])
    return found


class Blackbox:
    """One blackbox_exporter, asked over connections that stay open, so that asking costs it little."""

    def __init__(self, process, port):
        self.process, self.port = psutil.Process(process.pid), port
        self._idle = []

    def measure(self, mode, url, count):
        before = self.process.cpu_times()
        found = asyncio.run(self._measure(mode, url, count))
        after = self.process.cpu_times()
        return found, after.user + after.system - before.user - before.system

    async def _measure(self, mode, url, count):
        self._idle = []
        try:
            return await in_mode(mode, lambda: self._probe(url), count)
        finally:
            for _, writer in self._idle:
                writer.transport.abort()

    async def _probe(self, url):
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET /probe?module=hold&target={url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        body = await (reader.readexactly(int(length[1])) if length else read_chunks(reader))
        self._idle.append((reader, writer))
        assert SUCCESS.search(body), body.decode()
        return added_ms(float(DURATION.search(body)[1]))


async def read_chunks(reader):
    """Return a chunked body."""
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


@contextlib.contextmanager
def blackbox():
    """Run one, or yield None when it is not installed."""
    if BLACKBOX is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="fleetdeck-blackbox-") as directory:
        config = Path(directory) / "modules.yml"
        config.write_text(MODULES)
        port = free_port()
        command = [BLACKBOX, f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: socket.create_connection(("127.0.0.1", port)).close() is None, passing=OSError)
            yield Blackbox(process, port)
        finally:
            process.terminate()
            process.wait(10)


class Curl:
    """A curl for each probe, or one that has all at once in hand; its own clock, its whole CPU."""

    def measure(self, mode, url, count):
        if mode == "paced":
            return [], 0.0  # two hundred processes a second measure the machine
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        width = AT_ONCE.get(mode, 1)
        batches = [[url] * width] * max(count // width, 1)
        found = [added_ms(seconds) for batch in batches for seconds in self._run(batch)]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _run(self, urls):
        command = [CURL, "--silent", "--insecure", "--http1.1", "--write-out", "%{time_total}\n"]
        command += ["--parallel", "--parallel-immediate", "--parallel-max", str(len(urls))] if len(urls) > 1 else []
        for url in urls:
            command += ["--output", os.devnull, url]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [float(line) for line in output.split()]
