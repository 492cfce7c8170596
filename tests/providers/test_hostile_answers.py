"""What a broken or hostile provider may write: read as nothing, at once, and never as an exception that nobody expects."""

from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from fleet.providers.errors import NotUnderstood
from fleet.providers.http import Answer
from fleet.providers.reading import number, time, whole


def test_times_of_no_use_are_none_at_all():
    assert time("9999-12-31T23:59:59Z") is None
    assert time("0001-01-01T00:00:00+14:00") is None
    assert time("2099-12-31T15:59:00Z") == datetime(2099, 12, 31, 15, 59, tzinfo=UTC)


@pytest.mark.parametrize("value", ["1e999999", Decimal("-1e999999"), "9" * 4000], ids=["text", "decimal", "digits"])
def test_a_number_of_a_million_digits_is_not_written_out(value):
    assert whole(value) is None
    assert number(value) is None


def test_json_that_is_nested_without_end_is_not_understood():
    answer = Answer(200, httpx.Headers(), "[" * 100_000)
    with pytest.raises(NotUnderstood):
        answer.json()
    assert answer.json_or_none() is None
