"""Samples of a closed hour or day as compact bytes. Pure; every value and time comes back exactly.

A column of floats becomes whole numbers when some power of ten makes all of them whole (350.25 W → 35025), else the bit
patterns of the floats, which order like whole numbers. Whole numbers lose their common divisor (a clock that moves in
15 MHz, memory in 2 MiB), then become offsets from the least or differences from the one before, whichever is shorter, and
lie in planes of equal significance, so that zstd sees runs. Times are kept as steps off a regular grid: nothing when it is
kept, some bits for each sample when it is not.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import zstandard
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Singles = NDArray[np.float32]

LEVEL: Final = 9
_DECIMALS: Final = (0, 1, 2, 3)
_BITS: Final = 15  # in place of the power of ten: the numbers are floats' bit patterns
_NOTHING: Final = 14  # the column has no value at all
_HAS_NONE: Final = 0x80  # flag: some values are missing, a bit mask follows
_DIFFERENCES: Final = 0x40
_EXACT: Final = 2.0**31  # beyond, scaling by powers of ten is not worth the check
_WIDTHS: Final[tuple[type[np.unsignedinteger[Any]], ...]] = (np.uint8, np.uint16, np.uint32, np.uint64)
_MAGICLESS: Final = zstandard.FORMAT_ZSTD1_MAGICLESS


@dataclass(frozen=True, slots=True)
class Block:
    """Samples of one subject, in order of time. values: (samples × metrics), NaN for none; reasons: -1 for none."""

    at_ms: Integers
    values: Singles
    reasons: NDArray[np.int32]


class _Reader:
    """A place in a buffer that moves on."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def take(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def varint(self) -> int:
        """Read an unsigned number of 7 bits a byte, least first."""
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        value = self.varint()
        return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _zigzag(values: Integers) -> NDArray[np.uint64]:
    """Map 0, -1, 1, -2 … to 0, 1, 2, 3 …, so that small differences of both signs have small codes."""
    folded: NDArray[np.uint64] = ((values << 1) ^ (values >> 63)).view(np.uint64)
    return folded


def _unzigzag(codes: NDArray[np.uint64]) -> Integers:
    signed: Integers = (codes >> np.uint64(1)).view(np.int64) ^ -(codes & np.uint64(1)).view(np.int64)
    return signed


def _planes(codes: NDArray[np.uint64]) -> bytes:
    """Return the width of the codes, then their bytes: all least significant ones first."""
    highest = int(codes.max(initial=0))
    width = next(number for number, kind in enumerate(_WIDTHS) if highest <= np.iinfo(kind).max)
    narrow = codes.astype(_WIDTHS[width])
    return bytes([width]) + narrow.view(np.uint8).reshape(len(codes), -1).T.tobytes()


def _unplanes(reader: _Reader, count: int) -> NDArray[np.uint64]:
    kind = _WIDTHS[reader.byte()]
    planes = np.frombuffer(reader.take(count * np.dtype(kind).itemsize), dtype=np.uint8)
    narrow = np.ascontiguousarray(planes.reshape(-1, count).T).view(kind).reshape(count)
    return narrow.astype(np.uint64)


def _cost(codes: NDArray[np.uint64]) -> float:
    """Estimate the bits that entropy coding needs for these codes."""
    _, counts = np.unique(codes, return_counts=True)
    return float(-(counts * np.log2(counts / len(codes))).sum()) + 8.0 * len(counts)


def _encode_integers(values: Integers) -> tuple[int, bytes]:
    """Return flags and bytes of at least one whole number."""
    least = int(values.min())
    offsets = values - least
    if not offsets.any():
        return 0, _signed(least) + _varint(1) + _planes(offsets.view(np.uint64))
    divisor = int(np.gcd.reduce(offsets))
    plain = (offsets // divisor).view(np.uint64)
    ordered: Integers = plain.view(np.int64)
    steps = _zigzag(ordered[1:] - ordered[:-1])
    head = _signed(least) + _varint(divisor)
    if len(steps) and _cost(steps) < _cost(plain):
        return _DIFFERENCES, head + _varint(int(plain[0])) + _planes(steps)
    return 0, head + _planes(plain)


def _decode_integers(reader: _Reader, count: int, flags: int) -> Integers:
    least, divisor = reader.signed(), reader.varint()
    if flags & _DIFFERENCES:
        first = reader.varint()
        steps = _unzigzag(_unplanes(reader, count - 1))
        plain = np.concatenate([[first], first + np.cumsum(steps)]).astype(np.int64)
    else:
        plain = _unplanes(reader, count).view(np.int64)
    return plain * divisor + least


def _as_integers(values: Singles) -> tuple[int, Integers]:
    """Return a power of ten (or `_BITS`) and the whole numbers that stand for these floats."""
    for decimals in _DECIMALS:
        scaled = np.rint(values.astype(np.float64) * 10**decimals)
        if np.abs(scaled).max() < _EXACT * 2**12 and np.array_equal(_from_scaled(scaled, decimals), values):
            if np.any(np.signbit(values) & (values == 0)):
                break  # a negative zero is a bit pattern, not a number
            return decimals, scaled.astype(np.int64)
    bits = values.view(np.int32).astype(np.int64)
    return _BITS, np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)


def _from_scaled(scaled: NDArray[np.float64], decimals: int) -> Singles:
    values: Singles = (scaled / 10**decimals).astype(np.float32)
    return values


def _from_integers(scale: int, numbers: Integers) -> Singles:
    if scale != _BITS:
        return _from_scaled(numbers.astype(np.float64), scale)
    bits = np.where(numbers < 0, (-numbers - 1) | 0x80000000, numbers)
    return bits.astype(np.uint32).view(np.float32)


def encode_column(values: Singles) -> bytes:
    """Return the bytes of one metric's values, not yet compressed."""
    is_none = np.isnan(values)
    some = values[~is_none]
    if not len(some):
        return bytes([_NOTHING])
    scale, numbers = _as_integers(some)
    flags, body = _encode_integers(numbers)
    mask = b""
    if len(some) < len(values):
        flags |= _HAS_NONE
        mask = np.packbits(is_none).tobytes()
    return bytes([scale | flags]) + mask + body


def _decode_column(reader: _Reader, count: int) -> Singles:
    flags = reader.byte()
    scale = flags & 0x0F
    if scale == _NOTHING:
        return np.full(count, np.nan, dtype=np.float32)
    if not flags & _HAS_NONE:
        return _from_integers(scale, _decode_integers(reader, count, flags))
    packed = np.frombuffer(reader.take(-(-count // 8)), dtype=np.uint8)
    is_none = np.unpackbits(packed, count=count).astype(np.bool_)
    values = np.full(count, np.nan, dtype=np.float32)
    values[~is_none] = _from_integers(scale, _decode_integers(reader, count - int(is_none.sum()), flags))
    return values


def decode_column(data: bytes, count: int) -> Singles:
    """Return the values of `encode_column`; `count` counts those missing too."""
    return _decode_column(_Reader(data), count)


def encode_times(at_ms: Integers) -> bytes:
    """Return the bytes of ordered times: how many, the first, the usual step, and what each step differs from it."""
    steps = np.diff(at_ms)
    usual = int(np.median(steps)) if len(steps) else 0
    head = _varint(len(at_ms)) + _signed(int(at_ms[0]) if len(at_ms) else 0) + _signed(usual)
    drift = at_ms - at_ms[:1] - usual * np.arange(len(at_ms))
    if not drift.any():
        return head + b"\0"
    flags, body = _encode_integers(drift)
    return head + bytes([1 | flags]) + body


def _decode_times(reader: _Reader) -> Integers:
    count, first, usual = reader.varint(), reader.signed(), reader.signed()
    grid = first + usual * np.arange(count, dtype=np.int64)
    flags = reader.byte()
    return grid + _decode_integers(reader, count, flags) if flags else grid


def decode_times(data: bytes) -> Integers:
    """Return the times of `encode_times`."""
    return _decode_times(_Reader(data))


def encode_reasons(reasons: NDArray[np.int32]) -> bytes:
    """Return the bytes of clock event reasons, -1 for none."""
    if not len(reasons):
        return b""
    flags, body = _encode_integers(reasons.astype(np.int64))
    return bytes([flags]) + body


def _decode_reasons(reader: _Reader, count: int) -> NDArray[np.int32]:
    return _decode_integers(reader, count, reader.byte()).astype(np.int32) if count else np.empty(0, dtype=np.int32)


def decode_reasons(data: bytes, count: int) -> NDArray[np.int32]:
    """Return the reasons of `encode_reasons`."""
    return _decode_reasons(_Reader(data), count)


def compress(plain: bytes) -> bytes:
    """Compress what the functions above encode; without zstd's magic number and checksum, which rows do not need."""
    parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, format=_MAGICLESS, source_size=len(plain))
    return zstandard.ZstdCompressor(compression_params=parameters).compress(plain)


def decompress(packed: bytes) -> bytes:
    """Undo `compress`."""
    return zstandard.ZstdDecompressor(format=_MAGICLESS).decompress(packed)


def encode_block(block: Block) -> bytes:
    """Return a subject's hour as one compressed value: times, every metric, reasons."""
    metrics = block.values.shape[1]
    columns = (encode_column(np.ascontiguousarray(block.values[:, metric])) for metric in range(metrics))
    plain = encode_times(block.at_ms) + bytes([metrics]) + b"".join(columns) + encode_reasons(block.reasons)
    return compress(plain)


def decode_block(data: bytes, *, metrics: int) -> Block:
    """Return the block of `encode_block`; metrics that the catalogue got since are NaN."""
    reader = _Reader(decompress(data))
    at_ms = _decode_times(reader)
    stored = reader.byte()
    values = np.full((len(at_ms), metrics), np.nan, dtype=np.float32)
    for metric in range(stored):
        values[:, metric] = _decode_column(reader, len(at_ms))
    return Block(at_ms, values, _decode_reasons(reader, len(at_ms)))


def merge_blocks(old: Block, new: Block) -> Block:
    """Return the samples of both in order of time; of two at the same time the new one stays."""
    at_ms = np.concatenate([old.at_ms, new.at_ms])
    order = np.argsort(at_ms, kind="stable")
    last = np.r_[at_ms[order][1:] != at_ms[order][:-1], True] if len(order) else np.empty(0, dtype=np.bool_)
    keep = order[last]
    values = np.concatenate([old.values, new.values])
    return Block(at_ms[keep], values[keep], np.concatenate([old.reasons, new.reasons])[keep])
