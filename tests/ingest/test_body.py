"""Bodies: two encodings, three compressions, and everything that is not one of them."""

import asyncio
import gzip
import io
import zlib

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from fleet.agent import wire
from monitoring.ingest import body
from monitoring.ingest.refusals import Refused


def report(**fields):
    fields = {"gpus": [], "driver": wire.Driver(state="ok"), "boot_id": "b", "seq": 1, "agent_version": "1"} | fields
    return wire.Report(protocol=fields.pop("protocol", 1), **fields)


def refusal(call, *arguments):
    with pytest.raises(Refused) as caught:
        call(*arguments)
    return caught.value.status, caught.value.code


@pytest.mark.parametrize("encode", [gzip.compress, zstandard.ZstdCompressor().compress])
@given(plain=st.binary(max_size=5000))
def test_what_was_compressed_comes_back(encode, plain):
    name = "gzip" if encode is gzip.compress else "zstd"
    assert body.decompress(encode(plain), name) == plain


def streamed(plain):
    """Return a zstd frame that does not tell its size, as `zstd` makes from a pipe."""
    out = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
        writer.write(plain)
    return out.getvalue()


def test_a_frame_that_does_not_tell_its_size_is_read():
    assert body.decompress(streamed(b"x" * 10_000), "zstd") == b"x" * 10_000


BOMB = bytes(50_000_000)


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [
        (zstandard.ZstdCompressor().compress(BOMB), "zstd"),
        (streamed(BOMB), "zstd"),
        (gzip.compress(BOMB), "gzip"),
        (zstandard.ZstdCompressor().compress(bytes(wire.LIMITS["decoded_bytes"] + 1)), "zstd"),
        (gzip.compress(bytes(1_000_000)), "gzip"),  # within the size, far beyond the ratio
    ],
)
def test_a_bomb_is_refused_before_it_is_in_memory(packed, encoding):
    import tracemalloc

    tracemalloc.start()
    status, code = refusal(body.decompress, packed, encoding)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (status, code) in {(413, "too_large"), (400, "damaged")}
    assert peak < 3 * wire.LIMITS["decoded_bytes"] < len(BOMB)


def test_a_frame_that_lies_about_its_size_is_refused():
    honest = bytearray(zstandard.ZstdCompressor(write_content_size=True).compress(b"a" * 200))
    assert zstandard.get_frame_parameters(bytes(honest)).content_size == 200
    honest[5] = 3
    assert refusal(body.decompress, bytes(honest), "zstd") == (400, "damaged")


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
@pytest.mark.parametrize("damage", ["cut", "tail", "noise", "empty"])
def test_damage_is_refused(encoding, damage):
    packed = (
        gzip.compress(b"report" * 50) if encoding == "gzip" else zstandard.ZstdCompressor().compress(b"report" * 50)
    )
    packed = {"cut": packed[:-3], "tail": packed + b"more", "noise": b"\x00" * 40, "empty": b""}[damage]
    assert refusal(body.decompress, packed, encoding) == (400, "damaged")


def test_unknown_encodings_and_types_are_refused():
    assert refusal(body.decompress, b"x", "br") == (415, "unsupported_encoding")
    assert refusal(body.decompress, zlib.compress(b"x"), "deflate") == (415, "unsupported_encoding")
    assert refusal(body.encoding_of, "text/html") == (415, "unsupported_content_type")
    assert body.encoding_of("application/json; charset=utf-8") == "json"
    assert body.encoding_of(wire.CONTENT_TYPE) == "msgpack"


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
def test_quick_and_full_decoding_agree(encoding):
    encode = msgspec.json.encode if encoding == "json" else msgspec.msgpack.encode
    full = report(
        gpus=[
            wire.Gpu(
                uuid="GPU-1", samples=[wire.GpuSample(1, 2, utilization_percent=3)], facts=wire.GpuFacts(name="H200")
            )
        ],
        faults=[wire.Fault(key="k", at_ms=1, code=79)],
        capabilities=["docker"],
    )
    plain = encode(full)
    quick = body.decode_quick(plain, encoding)
    assert body.decode_full(plain, encoding) == full
    assert astuple(quick.gpus[0].samples[0])[:3] == (1, 2, 3)
    assert len(astuple(quick.gpus[0].samples[0])) == body.SAMPLE_FIELDS
    assert body.is_present(quick.gpus[0].facts)
    assert not body.is_present(quick.gpus[0].health)
    assert body.is_present(quick.faults)
    assert not body.is_present(quick.host)


def over(**fields):
    return msgspec.msgpack.encode(report(**fields))


def cards(count, **fields):
    return [wire.Gpu(uuid=f"GPU-{number}", **fields) for number in range(count)]


@pytest.mark.parametrize(
    ("plain", "code"),
    [
        (b"\xc1", "invalid_report"),
        (b"", "invalid_report"),
        (b"[]", "invalid_report"),
        (over(protocol=3), "unsupported_protocol"),
        (over(protocol=0), "unsupported_protocol"),
        (over(seq=0), "invalid_report"),
        (over(agent_version="x" * 33), "invalid_report"),
        (over(gpus=cards(65)), "over_limit"),
        (over(gpus=cards(1) + cards(1)), "invalid_report"),
        (over(gpus=cards(1, samples=[wire.GpuSample(1, 1)] * 721)), "over_limit"),
        (over(host_samples=[wire.HostSample(1, 1)] * 721), "over_limit"),
        (over(gpus=cards(1, samples=[wire.GpuSample(10**15, 1)])), "invalid_report"),
        (over(gpus=cards(1, samples=[wire.GpuSample(1, -(10**15))])), "invalid_report"),
    ],
)
def test_reports_that_break_a_rule_are_refused(plain, code):
    assert refusal(body.decode_quick, plain, "msgpack") == (400, code)


def test_samples_without_a_time_are_refused():
    raw = {"protocol": 1, "boot_id": "b", "seq": 1, "agent_version": "1", "driver": {"state": "ok"}}
    for row in ([None, 1], [float("nan"), 1], [1], []):
        plain = msgspec.msgpack.encode(raw | {"gpus": [{"uuid": "GPU-1", "samples": [row]}]})
        assert refusal(body.decode_quick, plain, "msgpack") == (400, "invalid_report")


def test_readings_of_a_newer_agent_are_dropped():
    raw = {"protocol": 1, "boot_id": "b", "seq": 1, "agent_version": "1", "driver": {"state": "ok"}}
    row = [float(number) for number in range(body.SAMPLE_FIELDS + 4)]
    plain = msgspec.msgpack.encode(raw | {"gpus": [{"uuid": "GPU-1", "samples": [row, row[:3]]}]})
    long, short = body.decode_quick(plain, "msgpack").gpus[0].samples
    assert astuple(long) == tuple(row[: body.SAMPLE_FIELDS])
    assert astuple(short) == (*row[:3], *[None] * (body.SAMPLE_FIELDS - 3))


def test_too_many_faults_and_processes_are_refused_when_read_in_full():
    faults = over(faults=[wire.Fault(key=str(number), at_ms=1, code=31) for number in range(501)])
    assert refusal(body.decode_full, faults, "msgpack") == (400, "over_limit")
    processes = over(gpus=cards(1, processes=[wire.GpuProcess(pid=1, kinds=[])] * 1001))
    assert refusal(body.decode_full, processes, "msgpack") == (400, "over_limit")


def receiving(*messages):
    queue = iter(messages)

    async def receive():
        return next(queue)

    return receive


def part(content, *, more=False):
    return {"type": "http.request", "body": content, "more_body": more}


def test_a_body_in_parts_is_put_together():
    receive = receiving(part(b"one", more=True), part(b"two", more=True), part(b"", more=False))
    assert asyncio.run(body.read_body(receive, declared=None)) == b"onetwo"


def test_a_body_that_is_too_big_is_refused_by_its_declaration_or_as_it_comes():
    big = b"x" * (wire.LIMITS["body_bytes"] // 2 + 1)
    receive = receiving(*[part(big, more=True)] * 2)
    assert refusal(asyncio.run, body.read_body(receive, declared=None)) == (413, "too_large")
    declared = str(wire.LIMITS["body_bytes"] + 1)
    assert refusal(asyncio.run, body.read_body(receiving(), declared=declared)) == (413, "too_large")


def test_a_client_that_goes_away_is_not_an_answer():
    receive = receiving(part(b"one", more=True), {"type": "http.disconnect"})
    assert refusal(asyncio.run, body.read_body(receive, declared=None)) == (400, "incomplete")
