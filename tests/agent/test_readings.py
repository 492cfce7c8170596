"""Readings that are missing: which are asked again, which are not, and what is told of them."""

import pynvml
import pytest

from fleet.agent.nvml.errors import CardLostError, StartOverError
from fleet.agent.nvml.readings import GAPS_UNTIL_SETTLED, Readings


class Call:
    """A call that answers a value or an NVML error code, and counts."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.count = 0

    def __call__(self):
        self.count += 1
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if isinstance(answer, tuple):
            raise pynvml.NVMLError(answer[0])
        return answer


NOT_SUPPORTED = (pynvml.NVML_ERROR_NOT_SUPPORTED,)
UNKNOWN = (pynvml.NVML_ERROR_UNKNOWN,)


def test_zero_is_a_value():
    assert Readings().ask("power", Call(0)) == 0


def test_what_a_card_does_not_have_is_asked_once():
    readings, call = Readings(), Call(NOT_SUPPORTED)
    assert [readings.ask("fan", call) for _ in range(3)] == [None, None, None]
    assert call.count == 1
    assert readings.missing() == {"fan": "not_supported"}


def test_a_function_that_the_library_lacks_is_asked_once():
    readings, call = Readings(), Call((pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,))
    readings.ask("gpm", call)
    readings.ask("gpm", call)
    assert call.count == 1
    assert readings.missing() == {"gpm": "function_not_found"}


def test_a_reading_that_worked_and_is_not_supported_for_a_moment_is_a_gap_of_one():
    readings, call = Readings(), Call(300, NOT_SUPPORTED, 301)
    assert [readings.ask("power", call) for _ in range(3)] == [300, None, 301]
    assert readings.missing() == {}


def test_a_reading_that_worked_and_stays_away_is_given_up():
    readings, call = Readings(), Call(300, NOT_SUPPORTED)
    for _ in range(GAPS_UNTIL_SETTLED + 5):
        readings.ask("power", call)
    assert call.count == 1 + GAPS_UNTIL_SETTLED
    assert readings.missing() == {"power": "not_supported"}


def test_an_error_is_asked_again_and_told_once_it_lasts():
    readings, call = Readings(), Call(UNKNOWN, UNKNOWN, UNKNOWN, 5)
    readings.ask("power", call)
    assert readings.missing() == {}
    readings.ask("power", call)
    readings.ask("power", call)
    assert readings.missing() == {"power": "unknown_error"}
    assert readings.ask("power", call) == 5
    assert readings.missing() == {}


def test_a_permission_that_lacks_is_told_at_once_and_asked_again():
    readings, call = Readings(), Call((pynvml.NVML_ERROR_NO_PERMISSION,), 1)
    assert readings.ask("gpm", call) is None
    assert readings.missing() == {"gpm": "no_permission"}
    assert readings.ask("gpm", call) == 1


def test_a_lost_card_ends_the_round_of_that_card():
    with pytest.raises(CardLostError):
        Readings().ask("power", Call((pynvml.NVML_ERROR_GPU_IS_LOST,)))


@pytest.mark.parametrize(
    "code",
    [
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        pynvml.NVML_ERROR_GPU_NOT_FOUND,
    ],
)
def test_some_errors_mean_to_start_over(code):
    with pytest.raises(StartOverError) as caught:
        Readings().ask("power", Call((code,)))
    assert caught.value.code == code


def test_a_card_that_wants_a_reset_says_so():
    readings = Readings()
    assert readings.ask("power", Call((pynvml.NVML_ERROR_RESET_REQUIRED,))) is None
    assert readings.fault == "reset_required"


def test_what_mig_hides_has_that_reason_until_the_card_is_whole_again():
    readings = Readings()
    readings.hidden_by_mig = frozenset({"utilization_percent"})
    call = Call(NOT_SUPPORTED, 55)
    assert readings.ask("utilization_percent", call) is None
    assert readings.missing() == {"utilization_percent": "mig_mode"}
    readings.hidden_by_mig = frozenset()
    readings.ask_again(frozenset({"utilization_percent"}))
    assert readings.ask("utilization_percent", call) == 55


def test_the_newest_call_that_answers_is_used_from_then_on():
    newer, older = Call((pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,)), Call(7)
    readings = Readings()
    assert [readings.ask_newest("memory", newer, older) for _ in range(3)] == [7, 7, 7]
    assert (newer.count, older.count) == (1, 3)
    assert readings.chosen("memory") == 1
    assert readings.missing() == {}


def test_an_error_of_the_newest_call_is_no_reason_to_use_the_older():
    newer, older = Call(UNKNOWN, 9), Call(7)
    readings = Readings()
    assert readings.ask_newest("memory", newer, older) is None
    assert readings.ask_newest("memory", newer, older) == 9
    assert older.count == 0


def test_a_card_that_answers_no_call_lacks_the_reading():
    readings = Readings()
    assert readings.ask_newest("memory", Call(NOT_SUPPORTED), Call(NOT_SUPPORTED)) is None
    assert readings.missing() == {"memory": "not_supported"}


def test_text_that_is_no_text_is_a_missing_reading():
    def broken():
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    assert Readings().ask("name", broken) is None


def test_ways_to_a_reading_are_not_told_as_readings():
    readings = Readings()
    readings.ask("_gpm_sample", Call(NOT_SUPPORTED))
    assert readings.missing() == {}
