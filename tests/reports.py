"""Reports as a panel reads them, with the samples as rows again."""

import math
import struct

import msgspec

from fleet.agent import wire

WHOLE = {"at_ms", "monotonic_ms"}


def decode_report(plain):
    """Return the report of an encoded one, its columns unpacked into samples."""
    report = msgspec.msgpack.decode(plain, type=wire.Report)
    rows = iter(rows_of(report.gpu_columns, wire.GpuSample))
    for gpu in report.gpus:
        gpu.previous = next(rows) if gpu.has_previous else gpu.previous
        gpu.samples += [next(rows) for _ in range(gpu.rows - gpu.has_previous)]
        gpu.rows, gpu.has_previous = 0, False
    host = rows_of(report.host_columns, wire.HostSample)
    if report.has_host_previous:
        report.host_previous = host.pop(0)
    report.host_samples += host
    report.gpu_columns = report.host_columns = None
    report.has_host_previous = False
    return report


def rows_of(columns, kind):
    """Return columns as samples; numbers that are whole come back as such."""
    if columns is None:
        return []
    numbers = struct.unpack(f"<{len(columns.data) // 8}d", columns.data)
    by_column = [numbers[start : start + columns.rows] for start in range(0, len(numbers), columns.rows)]
    return [kind(*[value_of(number) for number in row]) for row in zip(*by_column, strict=True)]


def value_of(number):
    """Return a reading as the agent had it, None for NaN."""
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() else number
