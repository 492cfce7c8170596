"""CSV for spreadsheets: UTF-8 with its mark, and no cell that a spreadsheet would run as a formula."""

import csv
from collections.abc import Iterable, Sequence
from typing import Final

from django.http import HttpResponse

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(value: object) -> str:
    """Return a cell's text; one that begins like a formula gets an apostrophe, unless it is a plain number."""
    text = "" if value is None else str(value)
    if not text.startswith(_FORMULA_STARTS):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def csv_response(*, name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> HttpResponse:
    """Return a download. Rows are bounded by the caller."""
    response = HttpResponse("\ufeff", content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    writer.writerow([safe_cell(cell) for cell in header])
    for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
    return response
