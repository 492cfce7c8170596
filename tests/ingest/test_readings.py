"""Decoded samples as an array: the quick way and the way number by number say the same, whatever is missing."""

import random

import numpy as np
import pytest
from msgspec.structs import astuple

from monitoring.ingest import readings
from monitoring.ingest.body import HOST_FIELDS, SAMPLE_FIELDS, QuickHostSample, QuickSample
from monitoring.ingest.readings import readings_of

NUMBERS = (0.0, -1.5, 1e15, float(0xC0C0C0C0), 5.0e-324)


def row(kind, width, missing):
    return kind(1.0, 2.0, *[None if column in missing else random.choice(NUMBERS) for column in range(2, width)])


def expected(reports, width):
    numbers = [np.nan if one is None else one for rows in reports for each in rows for one in astuple(each)]
    return np.array(numbers, dtype=np.float64).reshape(-1, width)


@pytest.mark.parametrize(("kind", "width"), [(QuickSample, SAMPLE_FIELDS), (QuickHostSample, HOST_FIELDS)])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 70_000])
def test_reports_of_any_length_are_read(kind, width, count):
    reports = [[row(kind, width, {4})] * count, [row(kind, width, {4})]]
    assert np.array_equal(readings_of(reports, width), expected(reports, width), equal_nan=True)


def test_cards_that_lack_different_readings_are_told_apart():
    random.seed(7)
    for _ in range(200):
        missing = [set(random.sample(range(2, SAMPLE_FIELDS), random.randrange(6))) for _ in range(3)]
        reports = [
            [row(QuickSample, SAMPLE_FIELDS, random.choice(missing)) for _ in range(random.randrange(5))]
            for _ in range(random.randrange(5))
        ]
        assert np.array_equal(readings_of(reports, SAMPLE_FIELDS), expected(reports, SAMPLE_FIELDS), equal_nan=True)


def test_like_cards_go_the_quick_way(monkeypatch):
    monkeypatch.setattr(readings, "_fill", None)
    reports = [[row(QuickSample, SAMPLE_FIELDS, {13, 19}) for _ in range(48)] for _ in range(4)]
    assert np.array_equal(readings_of(reports, SAMPLE_FIELDS), expected(reports, SAMPLE_FIELDS), equal_nan=True)
