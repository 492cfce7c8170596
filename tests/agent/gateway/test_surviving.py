"""What a gateway goes through without its callers noticing: dead and frozen replicas, restarts, changes, a panel that is away."""

import signal
import socket
import ssl
import subprocess
import threading

import httpx
import pytest

from fleet.agent.gateway.envoy import inotify, process
from fleet.agent.gateway.envoy.layout import EDS_FOLDER
from fleet.agent.orders import GatewayOrder, Upstream
from tests.agent.gateway.load import Load
from tests.agent.gateway.place import HTTP, KEY, ReplicaProcess, chat, ready, rule, words
from tests.waiting import eventually

pytestmark = pytest.mark.e2e


@pytest.fixture
def pair():
    """Two replicas that a test may kill."""
    started = [ReplicaProcess("one"), ReplicaProcess("two")]
    yield started
    for replica in started:
        replica.end()


def serve(place, *replicas, name="chat", **more):
    """Have these replicas serve an endpoint."""
    place.say(
        chat(name, *(replica.upstream(number) for number, replica in enumerate(replicas, 1)), **more), keys=[rule(1)]
    )
    ready(place, f"/{name}/echo")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_no_request_that_had_not_begun_is_lost_with_a_replica(own, pair, number):
    one, two = pair
    serve(own, one, two, first_byte_seconds=0.6, idle_seconds=0.6)
    with Load(own, "/chat/v1", {"n": 2, "gap": 0.02}, callers=16) as load:
        eventually(lambda: load.outcomes["ok"], lambda count: count > 100)
        one.signal(number)
        so_far = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"], lambda count: count > so_far + 150)
    assert load.failed == {}
    assert load.outcomes["cut"] == 0
    assert load.begun == load.outcomes["ok"]


@pytest.mark.parametrize(("first_byte", "idle"), [(0.6, 0.6), (0.2, 1.2)])
def test_a_stream_whose_replica_froze_is_cut_and_not_held_for_ever(own, pair, first_byte, idle):
    serve(own, pair[0], first_byte_seconds=first_byte, idle_seconds=idle)
    request = {"stream": True, "n": 100, "gap": 0.05}
    headers = {"authorization": f"Bearer {KEY}"}
    with HTTP.stream("POST", f"{own.url}/chat/v1", json=request, headers=headers) as answer:
        pieces = answer.iter_text()
        text = next(pieces)
        pair[0].signal(signal.SIGSTOP)
        with pytest.raises(httpx.RemoteProtocolError):
            text += "".join(pieces)
    assert words(text)[1] is False


def test_a_stream_outlives_the_removal_of_its_replica_and_new_requests_go_elsewhere(own, pair):
    one, two = pair
    serve(own, one)
    texts = []
    request = {"stream": True, "n": 15, "gap": 0.1}
    stream = threading.Thread(target=lambda: texts.append(own.post("/chat/v1", request).text))
    stream.start()
    eventually(lambda: HTTP.get(f"http://127.0.0.1:{one.port}/open").json()["open"], lambda count: count == 1)
    own.say(chat("chat", two.upstream(2)))
    eventually(lambda: own.get("/chat/echo").json()["name"], lambda name: name == "two", seconds=5)
    assert {own.get("/chat/echo").json()["name"] for _ in range(20)} == {"two"}
    stream.join()
    assert words(texts[0]) == (15, True)


def test_the_gateway_serves_on_while_the_agent_restarts_and_the_panel_is_away(own, pair):
    serve(own, *pair)
    pid, version = own.lane.pid, own.panel.version
    with Load(own, "/chat/v1", {"n": 1}, callers=4) as load:
        eventually(lambda: load.outcomes["ok"], lambda count: count > 20)
        own.panel.is_away = True
        own.restart()
        own.await_version(version)
        so_far = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"], lambda count: count > so_far + 100)
    assert set(load.outcomes) == {"ok"}
    assert own.lane.pid == pid
    own.panel.is_away = False
    own.say(chat("chat", pair[1].upstream(2)))
    assert {own.get("/chat/echo").json()["name"] for _ in range(10)} == {"two"}


def test_a_data_plane_that_died_with_its_agent_is_started_from_the_disk(own, pair):
    serve(own, *pair)
    own.lane.close()
    own.lane._plane._process.stop()
    own.panel.is_away = True
    own.start()
    ready(own, "/chat/echo")
    assert own.get("/chat/echo", key="fdk_unknown").status_code == 401


def test_a_data_plane_that_is_killed_is_started_again(own, pair):
    serve(own, *pair)
    pid = own.lane.pid
    subprocess.run(["kill", "-9", str(pid)], check=True)
    eventually(lambda: own.lane.pid, lambda now: now not in {None, pid})
    ready_again = eventually(
        lambda: own.get("/chat/echo").status_code, lambda status: status == 200, passing=httpx.HTTPError
    )
    assert ready_again == 200


def test_another_envoy_takes_over_without_a_cut_or_refused_request(own, pair, monkeypatch):
    monkeypatch.setattr(process, "LINGER_SECONDS", 0.5)
    serve(own, *pair)
    old = own.lane.pid
    with Load(own, "/chat/v1", {"stream": True, "n": 6, "gap": 0.05}, callers=4) as load:
        eventually(lambda: load.outcomes["ok"], lambda count: count > 4)
        record = own.lane._plane._process._book.serving
        record.command = [*record.command, "--of-another-version"]
        eventually(lambda: own.lane.pid, lambda pid: pid not in {None, old})
        eventually(lambda: own.lane._plane._process._book.leaving, lambda leaving: not leaving, seconds=30)
        so_far = load.outcomes["ok"]
        eventually(lambda: load.outcomes["ok"], lambda count: count > so_far + 8)
    assert set(load.outcomes) == {"ok"}


def certificate_of(place):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", place.order.port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="gate.example") as connection,
    ):
        return connection.getpeercert(binary_form=True)


def make_certificate(folder, name):
    """Write a self-signed certificate and its key; returns the two paths."""
    chain, key = folder / "chain.pem", folder / "key.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ),
            *("-subj", f"/CN={name}", "-keyout", str(key), "-out", str(chain)),
        ],
        check=True,
        capture_output=True,
    )
    return chain, key


def test_tls_by_files_that_may_be_renewed(own, pair, tmp_path, monkeypatch):
    monkeypatch.setattr("fleet.agent.gateway.envoy.plane.CERTIFICATE_SECONDS", 0.1)
    chain, key = make_certificate(tmp_path, "first.example")
    own.order = GatewayOrder(own.order.port, 0, "127.0.0.1", str(chain), str(key))
    own.say(chat("chat", pair[0].upstream(1)), keys=[rule(1)])
    first = eventually(lambda: certificate_of(own), passing=OSError, seconds=10)
    answer = eventually(
        lambda: httpx.get(
            f"https://127.0.0.1:{own.order.port}/chat/echo", headers={"authorization": f"Bearer {KEY}"}, verify=False
        ),
        lambda answer: answer.status_code == 200,
        seconds=5,
    )
    assert answer.json()["name"] == "one"
    key.write_text("torn")
    eventually(lambda: own.lane._reading.detail, lambda detail: "cannot be used" in detail, seconds=5)
    assert certificate_of(own) == first
    make_certificate(tmp_path, "second.example")
    eventually(lambda: certificate_of(own), lambda now: now != first, passing=OSError, seconds=10)
    eventually(lambda: own.lane._reading.detail, lambda detail: detail == "", seconds=5)


@pytest.mark.parametrize("missing", ["certificate", "port"])
def test_what_envoy_cannot_take_yet_is_said_and_taken_when_it_can(own, pair, tmp_path, monkeypatch, missing):
    monkeypatch.setattr("fleet.agent.gateway.envoy.plane.CERTIFICATE_SECONDS", 0.1)
    monkeypatch.setattr("fleet.agent.gateway.envoy.plane.REFUSED_SECONDS", 0.5)
    monkeypatch.setattr("fleet.agent.gateway.envoy.plane.REPEAT_SECONDS", 0.3)
    taken = socket.socket()
    if missing == "certificate":
        files = (str(tmp_path / "chain.pem"), str(tmp_path / "key.pem"))
        own.order = GatewayOrder(own.order.port, 0, "127.0.0.1", *files)
    else:
        taken.bind(("127.0.0.1", own.order.port))
        taken.listen()
    version = own.say(chat("chat", pair[0].upstream(1)), keys=[rule(1)], wait=False)
    failed = eventually(lambda: own.lane._reading, lambda reading: reading.state == "failed", seconds=15)
    assert "Envoy did not take" in failed.detail
    assert failed.applied_version == 0
    taken.close()
    if missing == "certificate":
        make_certificate(tmp_path, "late.example")
    own.await_version(version)


def test_endpoints_beyond_what_the_system_lets_envoy_watch_are_served_too(own, pair, monkeypatch):
    one, two = pair
    monkeypatch.setattr(inotify, "budget", lambda pid: 1)
    own.say(
        *(chat(name, one.upstream(1)) for name in ("first", "second", "third")),
        keys=[rule(1)],
    )
    for name in ("first", "second", "third"):
        ready(own, f"/{name}/echo")
    own.say(chat("third", two.upstream(2)))
    eventually(lambda: own.get("/third/echo").json()["name"], lambda name: name == "two", seconds=5)
    own.say(gone=["second"])
    assert own.get("/second/echo").status_code == 404
    assert {path.name for path in (own.folder / "envoy" / EDS_FOLDER).iterdir()} == {"first", "third"}


def test_a_change_of_replicas_rewrites_the_endpoints_own_file_alone(own, pair):
    one, two = pair
    own.say(*(chat(f"e{number}", one.upstream(number)) for number in range(20)), keys=[rule(1)])
    own.say(chat("e7", one.upstream(7), two.upstream(8)))
    assert own.lane._plane.rewritten == ["eds/e7/eds.json"]
    own.say(keys=[rule(1), rule(2, "fdk_x")])
    assert own.lane._plane.rewritten == []


def test_one_route_that_cannot_be_harms_no_other(own, pair):
    one, two = pair
    own.say(
        chat("../../etc", one.upstream(1)),
        chat("good", one.upstream(1), hosts=["shared.example"]),
        chat("late", two.upstream(2), hosts=["shared.example", "own.example", "not a host"]),
        chat("inside", Upstream(3, "169.254.169.254", 80)),
        keys=[rule(1)],
    )
    ready(own, "/good/echo")
    assert own.get("/echo", headers={"host": "shared.example"}).json()["name"] == "one"
    assert own.get("/echo", headers={"host": "own.example"}).json()["name"] == "two"
    detail = own.lane._reading.detail
    assert "'../../etc' cannot be part of an address" in detail
    assert "shared.example is good's" in detail
    assert "169.254.169.254:80 (a replica of inside) is not connected to" in detail
    assert own.get("/inside/echo").status_code == 503


def test_a_machine_whose_policy_forbids_it_runs_no_gateway(own):
    own.lane.close()
    own.start(is_allowed=False)
    own.follow(own.panel.say(keys=[]))
    said = eventually(lambda: own.panel.last, lambda report: report is not None and report.state == "failed")
    assert "allow_gateway" in said.detail
    assert own.lane.pid is None


def test_a_machine_without_envoy_says_how_to_get_it(own):
    own.lane.close()
    own.start(find_executable=lambda: None)
    own.follow(own.panel.say(keys=[]))
    said = eventually(lambda: own.panel.last, lambda report: report is not None and report.state == "failed")
    assert "--role gateway" in said.detail


def test_a_gateway_that_is_not_wanted_any_more_ends_and_forgets(own, pair):
    serve(own, *pair)
    own.lane.follow(own.orders + 1, None)
    eventually(lambda: own.lane.pid, lambda pid: pid is None)
    eventually(lambda: list((own.folder / "routes").iterdir()), lambda left: left == [])
    with pytest.raises(httpx.ConnectError):
        own.get("/chat/echo")
