"""A panel that takes an agent's reports and stores nothing: the other side of the agent benchmark.

ASGI; joins anybody, decodes every report with the wire's structs, answers with the interval that the benchmark asks for.
`GET /received/` tells how many reports and samples came.
"""

import gzip
import json
import os
import time

import msgspec
import zstandard

from fleet.agent import wire

INTERVAL_SECONDS = float(os.environ.get("FLEETDECK_BENCH_INTERVAL", "5"))
DECODER = msgspec.msgpack.Decoder(wire.Report)
RECEIVED = {"reports": 0, "gpu_samples": 0, "host_samples": 0, "bytes": 0}


async def body_of(receive):
    """Return the whole body of a request."""
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def unpacked(body, encoding):
    """Return the body without its compression."""
    if encoding == b"zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return gzip.decompress(body) if encoding == b"gzip" else body


def take(body, headers):
    """Count one report; return the answer to it."""
    report = DECODER.decode(unpacked(body, headers.get(b"content-encoding")))
    RECEIVED["reports"] += 1
    RECEIVED["gpu_samples"] += sum(gpu.rows - gpu.has_previous for gpu in report.gpus)
    RECEIVED["host_samples"] += report.host_columns.rows - report.has_host_previous if report.host_columns else 0
    RECEIVED["bytes"] += len(body)
    return wire.ReportAnswer(
        seq=report.seq,
        assignments_version=1,
        sample_interval_seconds=INTERVAL_SECONDS,
        report_interval_seconds=INTERVAL_SECONDS,
        panel_time_ms=time.time_ns() // 1_000_000,
    )


def answer_to(path, body, headers):
    """Return what this panel says to one request."""
    if path.endswith("/join/"):
        return wire.JoinAnswer("fda_bench000_x", 1, "bench", INTERVAL_SECONDS, INTERVAL_SECONDS)
    if path.endswith("/report/"):
        return take(body, headers)
    return wire.Assignments(1, INTERVAL_SECONDS, INTERVAL_SECONDS)


async def application(scope, receive, send):
    """Answer one request."""
    if scope["type"] != "http":
        return
    body = await body_of(receive)
    headers = dict(scope["headers"])
    if scope["path"] == "/received/":
        kind, content = b"application/json", json.dumps(RECEIVED).encode()
    elif headers.get(b"accept", b"").startswith(b"application/json"):
        kind, content = b"application/json", msgspec.json.encode(answer_to(scope["path"], body, headers))
    else:
        kind, content = b"application/msgpack", msgspec.msgpack.encode(answer_to(scope["path"], body, headers))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": content})
