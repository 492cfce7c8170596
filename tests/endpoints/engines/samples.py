"""Real pages of engines, where they lie beside the repository; tests that need them are skipped elsewhere."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "samples"


def sample(name):
    """Return the text of a sample, or skip the test."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"no sample {name} beside the repository")
    return path.read_text()
