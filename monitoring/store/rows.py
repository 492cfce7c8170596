"""How the statistics of one metric lie in a rollup row's cell: average, maximum, count, then minimum of every slot.

The minimum comes last because charts do not ask for it: what they read is the front of the cell. Minutes are kept by the
hundred thousand and read seldom: their cells are compressed. The others are read as they lie, hundreds of rows at once.
"""

from typing import Final

import numpy as np
import zstandard
from numpy.typing import NDArray

from monitoring.store.rollup import Stats
from monitoring.store.tables import MINUTE

_COMPRESSION: Final = zstandard.ZstdCompressionParameters.from_level(
    6, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=False
)
_SLOT_BYTES: Final = 14
_FRONT_BYTES: Final = 10
_FRONT: Final = (("average", "<f4"), ("maximum", "<f4"), ("count", "<u2"))
_MINIMUM: Final = ("minimum", "<f4")

Cell = bytes | None


def cell_dtype(slots: int, *, front: bool = False) -> np.dtype[np.void]:
    """Return the layout of an uncompressed cell, or of its front alone."""
    fields = _FRONT if front else (*_FRONT, _MINIMUM)
    return np.dtype([(name, kind, (slots,)) for name, kind in fields])


def front_of(column: str, level: int, slots: int) -> str:
    """Return the SQL that reads what charts need of a cell: the front where it can be cut off, else all of it."""
    return column if level == MINUTE else f"substring({column} FROM 1 FOR {slots * _FRONT_BYTES})"


def encode_cells(stats: Stats, level: int) -> list[Cell]:
    """Return one cell for each metric of one row, None where the row has no sample of it. stats: (slots × metrics)."""
    slots, metrics = stats.count.shape
    cells = np.empty(metrics, dtype=cell_dtype(slots))
    for name in ("average", "maximum", "minimum", "count"):
        cells[name] = getattr(stats, name).T
    has_any = [bool(some) for some in np.any(stats.count, axis=0)]
    compressor = zstandard.ZstdCompressor(compression_params=_COMPRESSION) if level == MINUTE else None
    return [
        (cell.tobytes() if compressor is None else compressor.compress(_planes(cell.tobytes()))) if some else None
        for cell, some in zip(cells, has_any, strict=True)
    ]


def decode_cells(cells: list[Cell], level: int, slots: int, *, front: bool = False) -> NDArray[np.void]:
    """Return the cells of many rows as one structured array (see `cell_dtype`); None becomes count 0 throughout.

    front: the cells were read through `front_of`.
    """
    dtype = cell_dtype(slots, front=front and level != MINUTE)
    if level == MINUTE:
        decompress = zstandard.ZstdDecompressor(format=zstandard.FORMAT_ZSTD1_MAGICLESS).decompress
        size = slots * _SLOT_BYTES
        cells = [None if cell is None else _unplanes(decompress(cell, max_output_size=size)) for cell in cells]
    nothing = bytes(dtype.itemsize)
    return np.frombuffer(b"".join([nothing if cell is None else cell for cell in cells]), dtype=dtype)


def _planes(cell: bytes) -> bytes:
    """Return a cell with the bytes of its numbers in planes, exponents beside exponents, so that zstd sees runs."""
    slots = len(cell) // _SLOT_BYTES
    averages, counts, minima = np.split(np.frombuffer(cell, dtype=np.uint8), [slots * 8, slots * 10])
    singles = np.concatenate([averages, minima]).reshape(-1, 4)
    return singles.T.tobytes() + counts.reshape(-1, 2).T.tobytes()


def _unplanes(planes: bytes) -> bytes:
    slots = len(planes) // _SLOT_BYTES
    singles, counts = np.split(np.frombuffer(planes, dtype=np.uint8), [slots * 12])
    numbers = np.ascontiguousarray(singles.reshape(4, -1).T).reshape(-1)
    return numbers[: slots * 8].tobytes() + counts.reshape(2, -1).T.tobytes() + numbers[slots * 8 :].tobytes()
