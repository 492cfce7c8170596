"""What is committed is told: at once where somebody looks, the fleet once a second, nothing that is old."""

import pytest

from fleet.agent import wire
from monitoring.ingest import publish
from monitoring.live.frames import SUMMARY_METRICS
from monitoring.metrics import GPU_METRIC_INDEX, HOST_METRIC_INDEX
from tests.ingest.panel import Panel, gpu, join, now_ms
from tests.waiting import eventually_here


@pytest.fixture
def told(store, monkeypatch):
    """Everything that is published, as (topic, data)."""
    frames = []

    async def remember(topic, data):
        frames.append((topic, data))

    monkeypatch.setattr(publish, "apublish", remember)
    monkeypatch.setattr(publish, "FLEET_SECONDS", 0.01)
    monkeypatch.setattr(publish, "watched_servers", frozenset)
    return frames


def settle(panel, told, topic):
    """Wait until the topic was told of, at most 5 s."""

    panel.run(eventually_here(lambda: any(name == topic for name, _ in told), seconds=5))
    return [data for name, data in told if name == topic]


def host_sample():
    return wire.HostSample(at_ms=now_ms(), monotonic_ms=1_000_000_000, cpu_percent=5.0)


def test_a_watched_server_gets_every_metric_of_its_cards_and_host(told):
    with Panel() as panel:
        sender = join()
        panel.ingest.publisher.watched = frozenset({sender.server.pk})
        panel.post(sender, sender.report([gpu(utilization_percent=70, performance_state=0)], [host_sample()]))
        (frame,) = settle(panel, told, f"server.{sender.server.pk}")
        ((subject, entry),) = frame["gpus"].items()
        assert set(entry) == {
            "at",
            "state",
            "state_reason",
            "clock_event_reasons",
            "performance_state",
            *GPU_METRIC_INDEX,
        }
        assert (entry["utilization_percent"], entry["power_watts"], entry["performance_state"]) == (70.0, None, 0)
        assert set(frame["host"][str(sender.server.pk)]) == {"at", *HOST_METRIC_INDEX}
        assert settle(panel, told, f"gpu.{subject}")[0] == {"gpus": {subject: entry}}


def test_the_fleet_hears_of_every_card_in_short(told):
    with Panel() as panel:
        sender = join()
        panel.post(sender, sender.report([gpu(utilization_percent=70)]))
        (frame,) = settle(panel, told, "fleet")
        ((_, entry),) = frame["gpus"].items()
        assert set(entry) == {"at", "state", *SUMMARY_METRICS}
        assert entry["state"] == "ok"
        assert not [topic for topic, _ in told if topic != "fleet"]


def test_the_fleet_hears_of_the_newest_of_many_reports(told, monkeypatch):
    monkeypatch.setattr(publish, "FLEET_SECONDS", 0.3)
    with Panel() as panel:
        one, other = join("gpu-1"), join("gpu-2")
        for value in range(5):
            cards = (gpu("GPU-a", ages=(0,), utilization_percent=value), gpu("GPU-b", ages=(0,), utilization_percent=9))
            panel.post(one, one.report([cards[value % 2], cards[1 - value % 2]]))
        panel.post(other, other.report([gpu("GPU-c", ages=(0,), state="degraded", utilization_percent=7)]))
        told_of = {}

        def is_told():
            for topic, data in told:
                told_of.update(data["gpus"] if topic == "fleet" else {})
            return sorted(entry["utilization_percent"] for entry in told_of.values()) == [4, 7, 9]

        panel.run(eventually_here(is_told, seconds=10))
        assert {entry["utilization_percent"]: entry["state"] for entry in told_of.values()} == {
            4: "ok",
            7: "degraded",
            9: "ok",
        }


def test_old_samples_and_duplicates_are_not_told(told):
    with Panel() as panel:
        sender = join()
        old = sender.report([gpu("GPU-old", ages=(3600,))])
        panel.post(sender, old)
        panel.post(sender, sender.report([gpu("GPU-old", ages=(3600,)), gpu("GPU-new", facts=False)]))
        panel.post(sender, old)
        frames = settle(panel, told, "fleet")
        assert sum(len(frame["gpus"]) for frame in frames) == 1


def test_a_broken_channel_layer_does_not_hold_up_reports(store, settings):
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [{"address": "redis://127.0.0.1:1/0"}]},
        }
    }
    with Panel() as panel:
        sender = join()
        panel.ingest.publisher.watched = frozenset({sender.server.pk})
        assert [panel.post(sender, sender.report([gpu()])).status_code for _ in range(3)] == [200] * 3
