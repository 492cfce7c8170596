"""What a gateway keeps on its disk of what it was told: the same after a restart, and never more than the panel says."""

from fleet.agent.gateway.store import RouteStore
from fleet.agent.orders import GatewayOrder, KeyRule, Route, Routes, Upstream

ORDER = GatewayOrder(8080, 3)
CHAT, ART = Route("chat", [Upstream(1, "10.0.0.1", 80)]), Route("art", [])
KEY = KeyRule(1, "ab" * 32)


def told(folder, *answers):
    store = RouteStore(folder)
    store.load()
    for answer in answers:
        store.take(answer)
    store.keep(ORDER)
    return store


def test_what_was_told_is_there_after_a_restart(tmp_path):
    told(tmp_path, Routes(3, is_whole=True, routes=[CHAT, ART], keys=[KEY]))
    after = RouteStore(tmp_path)
    after.load()
    assert (after.routes, after.keys, after.version, after.order) == ({"chat": CHAT, "art": ART}, [KEY], 3, ORDER)


def test_a_change_names_what_is_other_now_and_nothing_else(tmp_path):
    store = told(tmp_path, Routes(3, is_whole=True, routes=[CHAT, ART], keys=[KEY]))
    moved = Route("chat", [Upstream(2, "10.0.0.2", 80)])
    assert store.take(Routes(4, is_whole=False, routes=[moved, ART])) == ({"chat"}, False)
    assert store.take(Routes(5, is_whole=False, routes=[], gone=["art", "never"], keys=[])) == ({"art"}, True)
    assert store.take(Routes(6, is_whole=True, routes=[], keys=[])) == ({"chat"}, False)
    assert store.routes == {}


def test_what_cannot_be_read_is_told_anew_and_leaves_nothing_behind(tmp_path):
    told(tmp_path, Routes(3, is_whole=True, routes=[CHAT, ART], keys=[KEY]))
    (tmp_path / "meta.msgpack").write_bytes(b"torn")
    store = RouteStore(tmp_path)
    store.load()
    assert (store.version, store.routes) == (0, {})
    store.take(Routes(4, is_whole=True, routes=[CHAT], keys=[]))
    store.keep(ORDER)
    after = RouteStore(tmp_path)
    after.load()
    assert (after.routes, after.keys) == ({"chat": CHAT}, [])


def test_a_gateway_that_is_none_any_more_keeps_nothing(tmp_path):
    store = told(tmp_path, Routes(3, is_whole=True, routes=[CHAT], keys=[KEY]))
    store.forget()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
