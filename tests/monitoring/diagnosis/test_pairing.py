"""Results become rounds by time and place."""

from fleet.agent.probes.result import ProbeResult
from monitoring.diagnosis.pairing import paired


def result(seconds, vantage="a", connection="cold", total=100.0):
    moment = round(1_700_000_000_000 + seconds * 1000)
    return ProbeResult(
        target=1, kind="http", vantage=vantage, connection=connection, scheduled_ms=moment, started_ms=moment, outcome="ok",
        total_ms=total,
    )  # fmt: skip


def test_each_round_has_the_nearest_of_its_slot():
    outside = [result(30 * i, connection=kind) for i in range(10) for kind in ("cold", "warm")]
    host = [result(30 * i + 11, "host", total=50.0 + i) for i in range(10)]
    controls = [result(60 * i + 5, total=float(i)) for i in range(5)]
    found = paired(reversed(outside), reversed(host), controls)
    assert found.alone == 0
    assert [entry.at - 1_700_000_000 for entry in found.rounds] == [30.0 * i for i in range(10)]
    assert [entry.host.total_ms for entry in found.rounds] == [50.0 + i for i in range(10)]
    assert all(entry.warm.connection == "warm" and entry.cold.connection == "cold" for entry in found.rounds)
    assert [entry.control.total_ms for entry in found.rounds[:4]] == [0, 0, 1, 1]


def test_what_is_farther_away_than_half_a_slot_is_no_partner():
    found = paired([result(0), result(100)], [result(15, "host"), result(116, "host")])
    assert (len(found.rounds), found.alone) == (1, 1)
    assert found.rounds[0].warm is None
    assert found.rounds[0].control is None


def test_a_host_result_serves_one_round_of_each_place():
    found = paired([result(0), result(4), result(1, "b")], [result(2, "host")])
    assert sorted(entry.vantage for entry in found.rounds) == ["a", "b"]
    assert found.alone == 1


def test_controls_belong_to_their_place():
    found = paired([result(0), result(0, "b")], [result(1, "host")], [result(2, "b")])
    assert {entry.vantage: entry.control is not None for entry in found.rounds} == {"a": False, "b": True}


def test_nothing_makes_no_round():
    assert paired([], [result(1, "host")]).rounds == ()
    assert paired([result(1)], []).alone == 1
