"""The body of a report: read within bounds, decompressed within bounds, decoded into what the quick path needs.

The quick path leaves samples that came as columns alone (`blocks.py` reads them), decodes those that came as rows into rows
of floats (`astuple` gives a row), and leaves the slow parts (facts, health,
processes, faults) encoded; `decode_full` reads those when a report carries some.
"""

import zlib
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import zstandard
from msgspec import Meta, Raw, Struct, defstruct

from fleet.agent import wire, wire_engines
from monitoring.ingest.refusals import Refused

MAX_RATIO: Final = 200  # a real report compresses 5 to 30 times
FREE_BYTES: Final = 65_536  # so much may come out of any body
# One for all bodies: they are decompressed one after the other, in the event loop's thread.
_zstd: Final = zstandard.ZstdDecompressor(max_window_size=8 << 20)
SAMPLE_FIELDS: Final = len(wire.GpuSample.__struct_fields__)
HOST_FIELDS: Final = len(wire.HostSample.__struct_fields__)
ENGINE_FIELDS: Final = len(wire_engines.EngineSample.__struct_fields__)

Receive = Callable[[], Awaitable[dict[str, Any]]]


Milliseconds = Annotated[float, Meta(ge=0, le=1e14)]  # the year 5138; neither NaN nor infinite


class Timed(Struct, array_like=True, gc=False):
    """When a reading was taken, by the agent's clocks; what every row begins with."""

    at_ms: Milliseconds
    monotonic_ms: Milliseconds


def _row_of(sample: type[Struct]) -> type[Timed]:
    """Return the wire's struct with every reading as a float; fewer or more readings than this panel knows are fine."""
    fields = [(name, float | None, None) for name in sample.__struct_fields__[2:]]
    row: type[Timed] = defstruct(f"Quick{sample.__name__}", fields, bases=(Timed,), array_like=True, gc=False)  # type: ignore[assignment]
    return row


QuickSample: Any = _row_of(wire.GpuSample)
QuickHostSample: Any = _row_of(wire.HostSample)
ABSENT: Final = Raw()


class QuickGpu(Struct):
    """`wire.Gpu` with samples as columns, or as rows of floats, and the slow parts left as they came."""

    uuid: Annotated[str, Meta(max_length=96)]
    index: int | None = None
    parent_uuid: Annotated[str, Meta(max_length=96)] = ""
    state: Annotated[str, Meta(max_length=16)] = "ok"
    reason: Annotated[str, Meta(max_length=64)] = ""
    samples: list[QuickSample] = []
    previous: QuickSample | None = None
    rows: Annotated[int, Meta(ge=0)] = 0
    has_previous: bool = False
    facts: Raw = ABSENT
    unsupported: Raw = ABSENT
    health: Raw = ABSENT
    processes: Raw = ABSENT


class QuickReport(Struct):
    """`wire.Report`, likewise."""

    protocol: int
    boot_id: Annotated[str, Meta(max_length=36)]
    seq: Annotated[int, Meta(ge=1, le=2**62)]
    agent_version: Annotated[str, Meta(max_length=32)]
    driver: wire.Driver
    gpus: list[QuickGpu]
    host_samples: list[QuickHostSample] = []
    host_previous: QuickHostSample | None = None
    gpu_columns: wire.Columns | None = None
    host_columns: wire.Columns | None = None
    has_host_previous: bool = False
    host: Raw = ABSENT
    faults: Raw = ABSENT
    os_boot_id: Annotated[str, Meta(max_length=64)] = ""
    spooled_batches: int = 0
    lost_samples: int = 0
    capabilities: list[Annotated[str, Meta(max_length=32)]] = []
    engines: list[wire_engines.Engine] = []
    engine_columns: wire.Columns | None = None


_QUICK: Final = {
    "msgpack": msgspec.msgpack.Decoder(QuickReport).decode,
    "json": msgspec.json.Decoder(QuickReport).decode,
}
_FULL: Final = {
    "msgpack": msgspec.msgpack.Decoder(wire.Report).decode,
    "json": msgspec.json.Decoder(wire.Report).decode,
}
_CONTENT_TYPES: Final = {
    wire.CONTENT_TYPE: "msgpack",
    "application/msgpack": "msgpack",
    "application/vnd.msgpack": "msgpack",
    "application/json": "json",
}
_NOTHING: Final = frozenset({b"", b"\xc0", b"\x90", b"null", b"[]"})  # nil and the empty array


def is_present(raw: Raw) -> bool:
    """Say whether an optional part came with the report."""
    return raw is not ABSENT and bytes(raw) not in _NOTHING


def encoding_of(content_type: str) -> str:
    """Return `msgpack` or `json`. Raises Refused (415)."""
    encoding = _CONTENT_TYPES.get(content_type.partition(";")[0].strip().lower())
    if encoding is None:
        raise Refused(415, "unsupported_content_type", f"Send {wire.CONTENT_TYPE} or application/json.")
    return encoding


async def read_body(receive: Receive, *, declared: str | None) -> bytes:
    """Read the whole body. Raises Refused (413) as soon as it is known to be too big, (400) when the client went away."""
    limit = wire.LIMITS["body_bytes"]
    if declared is not None and declared.isdigit() and int(declared) > limit:
        raise _too_big(limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and message["type"] == "http.request" and len(body) <= limit:
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False) and message["type"] == "http.request" and size <= limit:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if message["type"] != "http.request":
        raise Refused(400, "incomplete", "The connection ended before the whole body had come.")
    if size > limit:
        raise _too_big(limit)
    return b"".join(parts)


def _too_big(limit: int) -> Refused:
    return Refused(413, "too_large", f"A report is at most {limit} bytes; send smaller batches.")


def decompress(body: bytes, encoding: str) -> bytes:
    """Undo the content encoding. Raises Refused: 413 for what grows beyond the limits, 400 for damage, 415 else."""
    if encoding in {"", "identity"}:
        return body
    limit = min(wire.LIMITS["decoded_bytes"], max(FREE_BYTES, len(body) * MAX_RATIO))
    try:
        if encoding == "zstd":
            return _unzstd(body, limit)
        if encoding == "gzip":
            return _gunzip(body, limit)
    except (zlib.error, zstandard.ZstdError) as error:
        raise Refused(400, "damaged", f"The body cannot be decompressed to at most {limit} bytes: {error}.") from error
    raise Refused(415, "unsupported_encoding", "Content-Encoding may be zstd, gzip or identity.")


def _unzstd(body: bytes, limit: int) -> bytes:
    """Decompress the one frame of the body. A frame that does not tell its size gets a buffer of `limit` bytes."""
    told = zstandard.get_frame_parameters(body).content_size
    if told != zstandard.CONTENTSIZE_UNKNOWN and told > limit:
        raise _bomb(limit)
    return _zstd.decompress(body, max_output_size=limit, allow_extra_data=False)


def _gunzip(body: bytes, limit: int) -> bytes:
    decompressor = zlib.decompressobj(wbits=31)
    plain = decompressor.decompress(body, limit + 1)
    if len(plain) > limit:
        raise _bomb(limit)
    if not decompressor.eof or decompressor.unused_data:
        raise Refused(400, "damaged", "The compressed body is cut short or has something after its end.")
    return plain


def _bomb(limit: int) -> Refused:
    return Refused(413, "too_large", f"The body grows to more than {limit} bytes when decompressed.")


def decode_quick(plain: bytes, encoding: str) -> QuickReport:
    """Decode and check against `wire.LIMITS`. Raises Refused (400)."""
    try:
        report: QuickReport = _QUICK[encoding](plain)
    except msgspec.DecodeError as error:
        raise Refused(400, "invalid_report", f"The report cannot be read: {error}.") from error
    _check_bounds(report)
    return report


def _check_bounds(report: QuickReport) -> None:
    if report.protocol not in wire.PROTOCOLS:
        raise Refused(400, "unsupported_protocol", f"This panel speaks protocol {wire.PROTOCOL}; update the agent.")
    cards = len([gpu for gpu in report.gpus if not gpu.parent_uuid])
    instances = len(report.gpus) - cards
    if cards > wire.LIMITS["gpus"] or instances > wire.LIMITS["gpus"] * wire.LIMITS["mig_instances_per_gpu"]:
        raise _over("gpus")
    if len({gpu.uuid for gpu in report.gpus}) < len(report.gpus):
        raise Refused(400, "invalid_report", "One UUID is named twice in a report.")
    limit = wire.LIMITS["samples_per_gpu"]
    if any(len(gpu.samples) > limit or gpu.rows > limit + gpu.has_previous for gpu in report.gpus):
        raise _over("samples_per_gpu")
    host_rows = report.host_columns.rows - report.has_host_previous if report.host_columns is not None else 0
    if max(len(report.host_samples), host_rows) > wire.LIMITS["host_samples"]:
        raise _over("host_samples")
    _check_engines(report)


def _check_engines(report: QuickReport) -> None:
    if len(report.engines) > wire.LIMITS["engines"]:
        raise _over("engines")
    if len({engine.replica for engine in report.engines}) < len(report.engines):
        raise Refused(400, "invalid_report", "One replica is named twice in a report.")
    limit = wire.LIMITS["samples_per_engine"]
    if any(engine.rows > limit + engine.has_previous for engine in report.engines):
        raise _over("samples_per_engine")
    if any(len(engine.histograms) > wire.LIMITS["histograms_per_engine"] for engine in report.engines):
        raise _over("histograms_per_engine")


def _over(limit: str) -> Refused:
    return Refused(
        400, "over_limit", f"More {limit.replace('_', ' ')} than the {wire.LIMITS[limit]} allowed in a report."
    )


def decode_full(plain: bytes, encoding: str) -> wire.Report:
    """Decode all of a report. Raises Refused (400)."""
    try:
        report: wire.Report = _FULL[encoding](plain)
    except msgspec.DecodeError as error:
        raise Refused(400, "invalid_report", f"The report cannot be read: {error}.") from error
    if len(report.faults) > wire.LIMITS["faults"]:
        raise _over("faults")
    if any(len(gpu.processes or ()) > wire.LIMITS["processes_per_gpu"] for gpu in report.gpus):
        raise _over("processes_per_gpu")
    return report


def boot_id_of(report: QuickReport) -> UUID:
    """Return the run's id. Raises Refused (400)."""
    try:
        return _uuid(report.boot_id)
    except ValueError as error:
        raise Refused(400, "invalid_report", "boot_id is not a UUID.") from error


@lru_cache(maxsize=4096)  # every report of a run names the same one
def _uuid(text: str) -> UUID:
    return UUID(text)
