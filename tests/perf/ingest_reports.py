"""The same samples as our agents send them and as VictoriaMetrics imports them: 8 cards × 5 samples of 16 values a report."""

import time
import uuid

import msgspec
import zstandard

from fleet.agent import wire
from fleet.agent.packing import packed
from tests.perf.load import request

CARDS = 8
SAMPLES = 5
VALUES = 16
STEP_MS = 5_000  # of the cards' counters; the reports themselves are as punctual as an agent's


def readings(card, step):
    """Return the readings of one sample: the 16 values of a data-centre card."""
    return {
        "utilization_percent": 60 + (card * 7 + step * 3) % 40,
        "memory_busy_percent": 30 + step % 9,
        "memory_used_bytes": (60 << 30) + (card << 21),
        "power_milliwatts": 350_000 + (step * 7919 + card * 104_729) % 90_000,
        "energy_millijoules": 10**12 + step * 1_750_000 + card,
        "temperature_celsius": 61 + card % 5,
        "memory_temperature_celsius": 70 + card % 5,
        "sm_clock_mhz": 1980 - 15 * (step % 4),
        "memory_clock_mhz": 2619,
        "encoder_percent": 0,
        "decoder_percent": 0,
        "performance_state": 0,
        "clock_event_reasons": 4,
        "pcie_tx_bytes": 10**12 + step * 40_000_000,
        "pcie_rx_bytes": 10**12 + step * 70_000_000,
        "nvlink_tx_kib": 10**9 + step * 9_000_000,
        "thermal_violation_ns": 0,
        "power_violation_ns": step * 10_000_000,
    }


def report(boot_id, seq, name, start_ms):
    """Return one report of a run, as an agent sends it: `previous` with each card, compressed."""

    def sample(card, step):
        return wire.GpuSample(at_ms=start_ms + step, monotonic_ms=10**7 + step * STEP_MS, **readings(card, step))

    first = seq * SAMPLES
    gpus = [
        wire.Gpu(
            uuid=f"GPU-{name}-{card}",
            index=card,
            previous=sample(card, first - 1),
            samples=[sample(card, first + number) for number in range(SAMPLES)],
        )
        for card in range(CARDS)
    ]
    return wire.Report(
        protocol=wire.PROTOCOL,
        boot_id=boot_id,
        seq=seq,
        agent_version="bench",
        driver=wire.Driver(state="ok"),
        gpus=gpus,
    )


def our_streams(port, agents, first_seq, count):
    """Return the requests of each agent, (name, token), for `count` reports from `first_seq` on."""
    start_ms = int(time.time() * 1000) - (first_seq + count) * SAMPLES
    compress = zstandard.ZstdCompressor(level=3).compress
    streams = []
    for name, token in agents:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": wire.CONTENT_TYPE, "Content-Encoding": "zstd"}
        boot_id = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        reports = (report(boot_id, seq, name, start_ms) for seq in range(first_seq, first_seq + count))
        bodies = (compress(msgspec.msgpack.encode(packed(one))) for one in reports)
        streams.append([request(port, "/api/agent/v1/report/", headers, body) for body in bodies])
    return streams


def victoria_body(seq, start_ms):
    """Return one report as VictoriaMetrics' JSON lines, with `@` where the sender's number goes."""
    steps = range(seq * SAMPLES, (seq + 1) * SAMPLES)
    lines = []
    for card in range(CARDS):
        rows = [readings(card, step) for step in steps]
        labels = {"server": "@", "gpu": f"GPU-@-{card}"}
        lines += [
            {
                "metric": {"__name__": name, **labels},
                "values": [row[name] for row in rows],
                "timestamps": [start_ms + step for step in steps],
            }
            for name in list(rows[0])[:VALUES]
        ]
    return b"\n".join(map(msgspec.json.encode, lines))


def victoria_streams(port, connections, first_seq, count):
    """Return the same samples as requests to VictoriaMetrics, a request a report."""
    start_ms = int(time.time() * 1000) - (first_seq + count) * SAMPLES
    bodies = [victoria_body(seq, start_ms) for seq in range(first_seq, first_seq + count)]
    return [
        [request(port, "/api/v1/import", {}, body.replace(b"@", b"%d" % sender)) for body in bodies]
        for sender in range(connections)
    ]
