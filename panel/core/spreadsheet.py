"""Text for spreadsheets: a name that came from a rented machine must not become a formula in somebody's Excel."""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(value: Any) -> Any:
    """Return text that a spreadsheet takes as text: a leading apostrophe before what would start a formula."""
    if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield the lines of a CSV file, header first, every cell safe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in itertools.chain([header], rows):
        writer.writerow([safe_cell(cell) for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
