"""From an order to a replica that serves, and back: placing, observing, routing, ending."""

from datetime import timedelta

import pytest

from endpoints.engines.base import EngineSpec
from endpoints.enums import Phase, ReplicaState
from endpoints.models import Gateway, Replica, ReplicaGpu
from endpoints.services.endpoints import endpoint_delete, endpoint_scale, endpoint_update
from endpoints.services.gateways import gateway_create
from endpoints.services.hosts import server_cordon, server_uncordon, serving_update
from endpoints.services.routing import routes_since
from fleet.enums import ServerState
from fleet.services.rebuilding import server_rebuild
from fleet.services.servers import server_end
from fleet.services.silence import servers_watch
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput
from panel.core.models import Event
from tests.endpoints.world import Site, deployed, open_replicas, reconcile, serving, settle, spec, status
from tests.fleet.factories import OPERATOR

pytestmark = pytest.mark.django_db


@pytest.fixture
def other():
    return Site("rack-2")


def test_a_replica_is_placed_on_a_free_card_and_its_agent_is_told(site):
    endpoint = deployed()
    reconcile()
    [order] = site.orders()
    assert (order.endpoint, order.revision, order.wanted) == ("chat", 1, "run")
    assert order.gpu_uuids == [site.machine.cards[0].uuid]
    assert order.command == ["engine", "--port", str(order.port)]
    endpoint.refresh_from_db()
    assert endpoint.phase == Phase.ROLLING_OUT


def test_an_endpoint_is_healthy_when_its_replicas_have_answered(site):
    endpoint = deployed(desired_replicas=2)
    settle(sites=[site])
    endpoint.refresh_from_db()
    assert (endpoint.phase, endpoint.active_revision.number, endpoint.reconcile_at) == (Phase.HEALTHY, 1, None)
    assert len(serving(endpoint)) == 2
    assert endpoint.active_revision.state == "good"


def test_no_card_is_given_twice(site):
    first, second = deployed("one", desired_replicas=2), deployed("two")
    settle(sites=[site])
    assert len(serving(first)) == 2
    assert open_replicas(second) == []
    second.refresh_from_db()
    assert second.phase_reason == "no_free_gpu"
    assert ReplicaGpu.objects.count() == 2


def test_a_card_is_free_again_when_its_replica_has_stopped_and_not_before(site):
    first, second = deployed("one", desired_replicas=2), deployed("two")
    settle(sites=[site])
    endpoint_scale(endpoint_id=first.pk, desired_replicas=1, actor=OPERATOR)
    reconcile()
    [draining] = [each for each in open_replicas(first) if each.wanted == "drain"]
    reconcile()
    assert open_replicas(second) == [], "its card is still held"
    site.obey()
    settle(sites=[site])
    draining.refresh_from_db()
    assert draining.ended_at is not None
    assert len(serving(second)) == 1


def test_a_card_that_somebody_else_uses_is_not_free(site, monkeypatch):
    from endpoints.services import placing
    from monitoring.selectors import Latest

    gpus = list(site.server.gpus.order_by("index"))
    used = {gpus[0].pk: Latest(now(), {"memory_used_bytes": 100 * 1024**3}, None, None)}
    monkeypatch.setattr(placing, "latest_for_gpus", lambda *, gpu_ids: used)
    deployed()
    reconcile()
    assert site.orders()[0].gpu_uuids == [gpus[1].uuid]


def test_replicas_are_spread_over_servers_unless_they_shall_not_be(site, other):
    endpoint = deployed(desired_replicas=2)
    settle(sites=[site, other])
    assert len({each.server_id for each in serving(endpoint)}) == 2
    packed = deployed("packed", desired_replicas=2, gpus=0, placement={"is_spread": False})
    settle(sites=[site, other])
    assert len({each.server_id for each in serving(packed)}) == 1


def test_a_placement_names_servers_models_and_memory(site, other):
    wanted = {"servers": [other.server.pk], "gpu_models": ["h200"], "min_memory_bytes": 100 * 1024**3}
    endpoint = deployed(placement=wanted)
    settle(sites=[site, other])
    assert [each.server_id for each in serving(endpoint)] == [other.server.pk]
    small = deployed("small", placement={"gpu_models": ["RTX 4090"]})
    settle(sites=[site, other])
    assert open_replicas(small) == []


def test_a_price_that_is_not_known_is_not_within_a_limit(site):
    endpoint = deployed(placement={"max_price": {"amount": "2", "currency": "USD"}})
    settle(sites=[site])
    assert open_replicas(endpoint) == []


def test_a_message_said_twice_or_late_changes_nothing(site):
    endpoint = deployed()
    reconcile()
    [order] = site.orders()
    site.say(status(order, state="ready"), seq=5)
    site.say(status(order, state="starting"), seq=4)
    site.say(status(order, state="starting"), seq=5)
    assert serving(endpoint)[0].pk == order.id
    site.say(status(order, state="not_ready", health="stalled"), seq=6)
    assert serving(endpoint) == []


def test_figures_that_cannot_be_are_kept_as_not_known(site):
    deployed()
    reconcile()
    [order] = site.orders()
    site.say(
        status(
            order, state="ready", running=float("nan"), waiting=float("inf"), answered_ms=-1.0, kv_cache_percent=12.5
        )
    )
    found = Replica.objects.get()
    assert (found.running, found.waiting, found.answered_ms, found.kv_cache_percent) == (None, None, None, 12.5)


def test_an_agent_hears_where_an_engine_lists_the_work_that_a_drain_waits_for(site):
    comfy = {"kind": "comfyui", "runtime": "process", "source": "path", "model": "/srv/comfy"}
    deployed(engine=EngineSpec.from_json(comfy))
    reconcile()
    [order] = site.orders()
    assert (order.queue_path, order.metrics_path) == ("/queue", "")


def test_an_agent_speaks_of_its_own_replicas_only(site, other):
    endpoint = deployed(placement={"servers": [site.server.pk]})
    reconcile()
    [order] = site.orders()
    other.say(status(order, state="ready"))
    assert serving(endpoint) == []


def test_a_word_about_an_earlier_generation_is_not_believed(site):
    endpoint = deployed()
    settle(sites=[site])
    Replica.objects.update(generation=2)
    [order] = site.orders()
    Replica.objects.update(state=ReplicaState.STARTING)
    site.say(status(order, generation=1, state="ready"))
    assert serving(endpoint) == []


def test_a_replica_whose_port_a_stranger_has_is_started_on_another(site):
    endpoint = deployed()
    reconcile()
    [order] = site.orders()
    site.say(status(order, state="pending", reason="port_in_use", detail="Port 20000 is taken by python."))
    [again] = site.orders()
    assert (again.id, again.generation) == (order.id, order.generation + 1)
    assert again.port != order.port
    settle(sites=[site])
    assert len(serving(endpoint)) == 1


def test_scaling_down_drains_before_it_stops(site):
    endpoint = deployed(desired_replicas=2)
    settle(sites=[site])
    endpoint_scale(endpoint_id=endpoint.pk, desired_replicas=1, actor=OPERATOR)
    reconcile()
    assert sorted(order.wanted for order in site.orders()) == ["drain", "run"]
    assert len(serving(endpoint)) == 1
    settle(sites=[site])
    endpoint.refresh_from_db()
    assert endpoint.phase == Phase.HEALTHY


def test_an_endpoint_scaled_to_zero_keeps_its_address_and_no_card(site):
    endpoint = deployed()
    settle(sites=[site])
    endpoint_scale(endpoint_id=endpoint.pk, desired_replicas=0, actor=OPERATOR)
    settle(sites=[site])
    endpoint.refresh_from_db()
    assert endpoint.phase == Phase.SCALED_TO_ZERO
    assert not ReplicaGpu.objects.exists()
    endpoint_scale(endpoint_id=endpoint.pk, desired_replicas=1, actor=OPERATOR)
    settle(sites=[site])
    assert len(serving(endpoint)) == 1


def test_a_deleted_endpoint_drains_and_then_is_gone(site):
    gateway = gateway_create(server_id=site.server.pk, actor=OPERATOR)
    endpoint = deployed()
    settle(sites=[site])
    have = routes_since(have=0, gateway=gateway).version
    endpoint_delete(endpoint_id=endpoint.pk, actor=OPERATOR)
    settle(sites=[site])
    endpoint.refresh_from_db()
    assert endpoint.deleted_at is not None
    assert site.orders() == []
    assert routes_since(have=have, gateway=gateway).gone == ["chat"]
    deployed()
    later = routes_since(have=have, gateway=gateway)
    assert (later.gone, [route.name for route in later.routes]) == ([], ["chat"])


def silent(site):
    """Let a server fall silent, and say since when."""
    servers_watch(now=now())
    server = site.server
    server.state, server.state_changed_at = ServerState.NOT_REPORTING, now()
    server.save(update_fields=["state", "state_changed_at"])


def test_a_silent_servers_replica_is_replaced_after_the_stated_time_and_not_before(site, other, time_machine):
    endpoint = deployed(placement={"servers": [site.server.pk, other.server.pk]}, lost_after_seconds=120)
    time_machine.move_to(now(), tick=False)
    settle(sites=[site, other])
    [first] = serving(endpoint)
    home, away = (site, other) if first.server_id == site.server.pk else (other, site)
    silent(home)
    time_machine.shift(timedelta(seconds=119))
    reconcile()
    assert [each.pk for each in serving(endpoint)] == [first.pk]
    time_machine.shift(timedelta(seconds=2))
    settle(sites=[away])
    assert [each.server_id for each in serving(endpoint)] == [away.server.pk]
    first.refresh_from_db()
    assert (first.state, first.ended_at) == (ReplicaState.LOST, None)
    assert ReplicaGpu.objects.filter(replica=first).exists(), "it may still run there"


def test_a_server_that_is_back_stops_the_replica_that_was_replaced(site, other, time_machine):
    time_machine.move_to(now(), tick=False)
    endpoint = deployed(lost_after_seconds=60)
    settle(sites=[site, other])
    [first] = serving(endpoint)
    home, away = (site, other) if first.server_id == site.server.pk else (other, site)
    silent(home)
    time_machine.shift(timedelta(seconds=61))
    settle(sites=[away])
    home.machine.send()
    assert home.orders() == []
    home.say(orders_of(first, state="ready"))
    assert len(serving(endpoint)) == 1, "what it still runs takes no requests"
    home.say()
    first.refresh_from_db()
    assert first.ended_at is not None
    settle(sites=[home, away])
    assert len(serving(endpoint)) == 1


def orders_of(replica, **changes):
    from fleet.agent import orders

    return orders.ReplicaStatus(id=replica.pk, generation=replica.generation, **changes)


def test_the_replica_of_a_retired_server_has_ended(site):
    endpoint = deployed()
    settle(sites=[site])
    server_end(server_id=site.server.pk, reason="left", actor=OPERATOR)
    reconcile()
    assert open_replicas(endpoint) == []
    assert not ReplicaGpu.objects.exists()
    endpoint.refresh_from_db()
    assert endpoint.phase == Phase.UNAVAILABLE


def test_the_replica_on_a_server_that_is_built_again_has_ended_though_nobody_saw_it_retired(site):
    endpoint = deployed()
    settle(sites=[site])
    server = server_end(server_id=site.server.pk, reason="lease_ended", actor=OPERATOR)
    server_rebuild(server=server, actor=OPERATOR)
    reconcile()
    assert open_replicas(endpoint) == []
    assert not ReplicaGpu.objects.exists()


def test_a_cordoned_server_takes_nothing_new_and_an_evacuated_one_gives_up_what_it_has(site, other):
    server_cordon(server_id=other.server.pk, actor=OPERATOR)
    endpoint = deployed(desired_replicas=1)
    settle(sites=[site, other])
    assert [each.server_id for each in serving(endpoint)] == [site.server.pk]
    server_uncordon(server_id=other.server.pk, actor=OPERATOR)
    server_cordon(server_id=site.server.pk, is_evacuating=True, actor=OPERATOR)
    reconcile()
    assert len(serving(endpoint)) == 1, "the old one serves until the new one does"
    settle(sites=[site, other])
    assert [each.server_id for each in serving(endpoint)] == [other.server.pk]


def test_a_failed_replica_is_replaced_and_its_failures_slow_the_next_try(site, time_machine):
    time_machine.move_to(now(), tick=False)
    endpoint = deployed()
    settle(sites=[site])
    [order] = site.orders()
    site.say(status(order, state="failed", reason="crash_loop", detail="CUDA error"))
    reconcile()
    endpoint.refresh_from_db()
    assert (endpoint.phase, endpoint.phase_reason) == (Phase.UNAVAILABLE, "retry_later")
    settle(sites=[site])
    assert serving(endpoint) == []
    time_machine.shift(timedelta(seconds=31))
    settle(sites=[site])
    assert len(serving(endpoint)) == 1
    assert Event.objects.filter(kind="replica.failed").get().data["detail"] == "CUDA error"


def test_a_route_holds_ready_replicas_only_and_changes_with_them(site, other):
    gateway = gateway_create(server_id=site.server.pk, actor=OPERATOR)
    serving_update(server_id=other.server.pk, address="10.0.0.7", actor=OPERATOR)
    endpoint = deployed(desired_replicas=2, in_flight_per_replica=2)
    settle(sites=[site, other])
    everything = routes_since(have=0, gateway=gateway)
    [route] = everything.routes
    assert sorted(each.address for each in route.upstreams) == ["10.0.0.7", "127.0.0.1"]
    assert (route.health_path, route.requires_key, route.in_flight_per_replica) == ("/health", True, 2)
    assert routes_since(have=everything.version, gateway=gateway).routes == []
    [order] = other.orders()
    other.say(status(order, state="not_ready", health="stalled"))
    changed = routes_since(have=everything.version, gateway=gateway)
    assert (changed.is_whole, len(changed.routes[0].upstreams)) == (False, 1)
    assert endpoint.upstream_key == route.upstream_key


def test_a_gateways_agent_hears_of_a_change(site, django_capture_on_commit_callbacks):
    gateway_create(server_id=site.server.pk, actor=OPERATOR)
    before = site.agent.assignments_version
    with django_capture_on_commit_callbacks(execute=True):
        endpoint_update(endpoint_id=deployed().pk, in_flight_limit=7, actor=OPERATOR)
    assert site.agent.assignments_version > before
    assert Gateway.objects.count() == 1


def test_names_hosts_and_limits_are_checked(site):
    with pytest.raises(InvalidInput):
        deployed("Chat")
    deployed("chat", hosts=["llm.example.com"])
    with pytest.raises(Conflict):
        deployed("chat")
    with pytest.raises(Conflict):
        deployed("other", hosts=["llm.example.com"])
    with pytest.raises(InvalidInput):
        deployed("other", hosts=["not a host"])
    with pytest.raises(InvalidInput):
        deployed("other", in_flight_limit=0)
    with pytest.raises(InvalidInput):
        deployed("other", placement={"max_price": {"amount": "x", "currency": "USD"}})
    with pytest.raises(InvalidInput):
        deployed("other", engine=spec(secret_environment={"HF_TOKEN": "NOT_KEPT"}))
