"""How the statistics of one metric lie in a rollup row's cell: average, maximum, minimum, count of every slot.

Minutes are kept by the hundred thousand and read seldom: their cells are compressed. The others are read as they lie,
hundreds of rows at once, without a loop.
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

Cell = bytes | None


def cell_dtype(slots: int) -> np.dtype[np.void]:
    """Return the layout of an uncompressed cell."""
    single = ("<f4", (slots,))
    return np.dtype([("average", *single), ("maximum", *single), ("minimum", *single), ("count", "<u2", (slots,))])


def encode_cells(stats: Stats, level: int) -> list[Cell]:
    """Return one cell for each metric of one row, None where the row has no sample of it. stats: (slots × metrics)."""
    slots, metrics = stats.count.shape
    cells = np.empty(metrics, dtype=cell_dtype(slots))
    for name in ("average", "maximum", "minimum", "count"):
        cells[name] = getattr(stats, name).T
    has_any = [bool(some) for some in np.any(stats.count, axis=0)]
    compress = _compressor() if level == MINUTE else None
    return [
        (_squeeze(cell, compress) if compress is not None else cell.tobytes()) if some else None
        for cell, some in zip(cells, has_any, strict=True)
    ]


def decode_cells(cells: list[Cell], level: int, slots: int) -> NDArray[np.void]:
    """Return the cells of many rows as one structured array (see `cell_dtype`); None becomes count 0 throughout."""
    nothing = bytes(slots * _SLOT_BYTES)
    if level == MINUTE:
        decompress = _decompressor()
        plain = [nothing if cell is None else _unsqueeze(cell, decompress, slots) for cell in cells]
    else:
        plain = [nothing if cell is None else cell for cell in cells] if None in cells else cells  # type: ignore[assignment]
    return np.frombuffer(b"".join(plain), dtype=cell_dtype(slots))


def _compressor() -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(compression_params=_COMPRESSION)


def _decompressor() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(format=zstandard.FORMAT_ZSTD1_MAGICLESS)


def _squeeze(cell: np.void, compressor: zstandard.ZstdCompressor) -> bytes:
    """Compress a cell with the bytes of its numbers in planes: exponents beside exponents."""
    singles = np.frombuffer(cell.tobytes(), dtype=np.uint8)
    edge = len(singles) // _SLOT_BYTES * 12
    planes = singles[:edge].reshape(-1, 4).T.tobytes() + singles[edge:].reshape(-1, 2).T.tobytes()
    return compressor.compress(planes)


def _unsqueeze(cell: bytes, decompressor: zstandard.ZstdDecompressor, slots: int) -> bytes:
    planes = np.frombuffer(decompressor.decompress(cell, max_output_size=slots * _SLOT_BYTES), dtype=np.uint8)
    edge = slots * 12
    return planes[:edge].reshape(4, -1).T.tobytes() + planes[edge:].reshape(2, -1).T.tobytes()
