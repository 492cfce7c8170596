"""An agent's side of the report endpoint, without NVML: sends numbered samples and remembers what was acknowledged."""

import contextlib
import itertools
import threading
import time
import uuid

import httpx
import msgspec

from fleet.agent import wire

CARDS = 8
SAMPLES = 3


class Reporter:
    """Sends one batch after another for ever, each until it is acknowledged, as an agent does."""

    def __init__(self, panel, name):
        with panel.client() as client:
            answer = client.post("/api/v1/join-tokens/", json={"name": name})
            answer.raise_for_status()
        request = wire.JoinRequest(token=answer.json()["token"], agent_version="0", hostname=name)
        joined = httpx.post(
            f"{panel.url}/api/agent/v1/join/",
            content=msgspec.msgpack.encode(request),
            headers={"Content-Type": "application/msgpack"},
        )
        joined.raise_for_status()
        self.joined = msgspec.msgpack.decode(joined.content, type=wire.JoinAnswer)
        self.url = f"{panel.url}/api/agent/v1/report/"
        self.uuids = [f"GPU-{name}-{index}" for index in range(CARDS)]
        self.boot_id = str(uuid.uuid4())
        self.acknowledged = []  # (uuid, at_ms) of every sample that a 2xx covered
        self.attempts = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._thread.join(30)

    def report(self, seq, times):
        """Return the batch `seq` with a sample per card at each of `times` (Unix ms)."""
        cards = [
            wire.Gpu(
                uuid=card, index=index,
                facts=wire.GpuFacts(name="Fake", memory_total_bytes=1 << 34) if seq == 1 else None,
                samples=[
                    wire.GpuSample(at, at, utilization_percent=index, power_milliwatts=seq * 1000) for at in times
                ],
            )
            for index, card in enumerate(self.uuids)
        ]  # fmt: skip
        return wire.Report(wire.PROTOCOL, self.boot_id, seq, "0", wire.Driver("ok"), cards)

    def _run(self):
        last = 0
        with httpx.Client(timeout=3) as client:
            for seq in itertools.count(1):
                now = max(int(time.time() * 1000), last + SAMPLES)
                times = [now - SAMPLES + 1 + index for index in range(SAMPLES)]
                last = now
                body = msgspec.msgpack.encode(self.report(seq, times))
                while not self._send(client, body):
                    if self._stopping.wait(0.05):
                        return
                self.acknowledged += itertools.product(self.uuids, times)
                if self._stopping.wait(0.02):
                    return

    def _send(self, client, body):
        self.attempts += 1
        headers = {
            "Authorization": f"Bearer {self.joined.agent_token}",
            "Content-Type": wire.CONTENT_TYPE,
            wire.HEADER_SENT_AT_MS: str(int(time.time() * 1000)),
            wire.HEADER_SENT_MONOTONIC_MS: str(int(time.time() * 1000)),
        }
        with contextlib.suppress(httpx.HTTPError):
            answer = client.post(self.url, content=body, headers=headers)
            if answer.is_success:
                return True
            assert answer.status_code in (429, 502, 503, 504), answer.text
        return False
