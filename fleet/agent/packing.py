"""Samples as columns of 8-byte floats, as they travel: the panel reads them in place instead of number by number."""

import math
import struct
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from fleet.agent import wire

_NOTHING: Final = math.nan


def packed(report: wire.Report) -> wire.Report:
    """Return the report with its samples as columns; whole numbers stay exact up to 2**53."""
    rows: list[wire.GpuSample] = []
    gpus = []
    for gpu in report.gpus:
        mine = gpu.samples if gpu.previous is None else [gpu.previous, *gpu.samples]
        rows += mine
        gpus.append(
            structs.replace(gpu, samples=[], previous=None, rows=len(mine), has_previous=gpu.previous is not None)
        )
    host = report.host_samples if report.host_previous is None else [report.host_previous, *report.host_samples]
    return structs.replace(
        report,
        gpus=gpus,
        gpu_columns=columns(rows),
        host_samples=[],
        host_previous=None,
        host_columns=columns(host),
        has_host_previous=report.host_previous is not None,
    )


def columns(rows: Sequence[Struct]) -> wire.Columns | None:
    """Return rows of one kind as columns, None for no rows."""
    if not rows:
        return None
    layout = struct.Struct(f"<{len(rows)}d")
    packed_columns = [
        layout.pack(*[_NOTHING if reading is None else reading for reading in column])
        for column in zip(*map(structs.astuple, rows), strict=True)
    ]
    return wire.Columns(len(rows), b"".join(packed_columns))
