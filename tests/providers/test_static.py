"""A machine without an API: nothing is asked, and nothing is promised."""

import pytest

from fleet.providers.base import Billing, abilities
from fleet.providers.errors import Refused
from fleet.providers.registry import connect
from fleet.reasons import Reason


@pytest.fixture
def static(monkeypatch):
    def no_way_out(kind):
        raise AssertionError("a machine without an API is asked nothing")

    provider = connect("static", credentials={}, options={})
    monkeypatch.setattr("httpx.Client.send", no_way_out)
    return provider


def test_no_key_is_asked_for_and_checking_is_quiet(static):
    assert static.credential_fields == ()
    assert static.check().permissions == {}
    assert static.check().balance is None


def test_it_is_not_synced_and_can_do_nothing_by_itself(static):
    assert static.is_synced is False
    assert abilities(static) == frozenset()


def test_asking_for_its_machines_is_refused_and_never_an_empty_list(static):
    for ask in (static.machines, lambda: static.machine("rack-7"), lambda: static.named("fleetdeck-ab12cd34-7")):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.reason == Reason.NOT_SUPPORTED
        assert refused.value.permanent


@pytest.mark.parametrize("billing", sorted(Billing.values))
def test_stopping_is_not_known_to_save_anything(static, billing):
    effect = static.stop_effect(Billing(billing))
    assert effect.saves_compute is None
    assert list(effect.keeps_billing) == ["everything"]
    assert str(effect.note)
