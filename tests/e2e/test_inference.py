"""A model behind a stable address: deployed over the API on real agents, called through the real gateway by the usual client."""

import openai
import pytest

from tests.e2e.running import RunningPanel, wait_until
from tests.e2e.serving import Api, Callers, Rig, engine_process, fake_spec, freeze, openai_client, thaw
from tests.engines.ring_model import word, write_ring_model
from tests.waiting import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

CALLERS, STREAMS = 8, 50


@pytest.fixture(scope="module")
def panel():
    with RunningPanel("--no-agent") as running:
        yield running


@pytest.fixture(scope="module")
def api(panel):
    with panel.client() as client:
        yield Api(client)


@pytest.fixture(scope="module")
def rigs(panel, api, tmp_path_factory):
    """Two machines; the first is the gateway too."""
    folder = tmp_path_factory.mktemp("rigs")
    made = [Rig(panel, api.client, "rig-1", folder / "1", gateway_port=free_port())]
    try:
        made.append(Rig(panel, api.client, "rig-2", folder / "2"))
        yield made
    finally:
        for rig in made:
            rig.leave()


@pytest.fixture(scope="module")
def gateway(api, rigs):
    """Where callers arrive, without the endpoint's name."""
    port = free_port()
    made = api.post("gateways/", {"server": rigs[0].id, "port": port, "public_url": f"http://127.0.0.1:{port}"})
    what = "The gateway serves"
    wait_until(lambda: api.get(f"gateways/{made['id']}/")["state"] == "serving", seconds=60, what=what)
    return made["url"]


@pytest.fixture(scope="module")
def key(api):
    return api.post("endpoint-keys/", {"name": "tests"})["key"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_ring_model(tmp_path_factory.mktemp("model") / "ring.gguf")


def ring_spec(model, slots=4):
    arguments = {"parallel": slots, "context_per_slot": 1024, "n_gpu_layers": 0}
    return {
        "kind": "llamacpp", "runtime": "process", "source": "path", "model": str(model), "served_name": "ring",
        "arguments": arguments,
    }  # fmt: skip


def test_a_real_model_is_deployed_called_rolled_under_load_and_returned_from_what_cannot_start(
    api, gateway, key, model, tmp_path
):
    api.deploy("ring", ring_spec(model), replicas=2)
    client = openai_client(f"{gateway}/ring", key)
    answered = client.chat.completions.create(
        model="ring", messages=[{"role": "user", "content": word(5)}], max_tokens=20, stream=True, temperature=0
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in answered if chunk.choices]
    assert "".join(pieces).split() == [word(number) for number in range(6, 26)]
    assert len([piece for piece in pieces if piece]) == 20, "one piece a token: nothing held it back"
    assert len({each["server"] for each in api.replicas("ring")}) == 2

    with Callers(client, "ring", count=CALLERS, tokens=30) as callers:
        callers.until_ok(20)
        api.post("endpoints/ring/revisions/", {"spec": ring_spec(model, slots=6), "gpus": 0})
        wait_until(lambda: api.endpoint("ring")["active_revision"] == 2, seconds=120, what="The second revision")
        callers.until_ok(20)
        broken = ring_spec(tmp_path / "nowhere.gguf") | {"start_limit_seconds": 30}
        api.post("endpoints/ring/revisions/", {"spec": broken, "gpus": 0})
        wait_until(lambda: api.endpoint("ring")["rollout"] is None, seconds=120, what="The broken one given up")
        callers.until_ok(20)
    assert callers.outcomes["not started"] == callers.outcomes["cut"] == 0, callers.errors[:5]

    shown = api.endpoint("ring")
    assert (shown["active_revision"], shown["target_revision"], shown["ready"]) == (2, 2, 2)
    wait_until(lambda: has_told(api, "ring"), seconds=30, what="The engines' own figures")
    told = [one for one in api.get("endpoints/ring/latency/")["sources"] if one["family"]]
    assert [one["family"] for one in told] == ["llamacpp"] * 2, "those that never answered tell nothing"
    assert all("time_to_first_token" in one["missing"] for one in told), "llama.cpp tells no such thing: it is named"
    newest = api.get("endpoints/ring/rollouts/")["results"][0]
    assert (newest["state"], newest["to_revision"]) == ("returned", 3)
    assert newest["reason"] in {"exited", "crash_loop"}
    assert newest["detail"], "it says why"
    api.remove("ring")


def has_told(api, name):
    """Whether the engines of an endpoint told of tokens, each of two replicas by itself."""
    told = api.get(f"endpoints/{name}/series/?metrics=generation_tokens_per_second")["series"]
    return sum(any(point[2] for point in one["points"]) for one in told if "replica" in one) >= 2


def test_a_key_that_is_revoked_opens_nothing_within_seconds(api, gateway, key):
    api.deploy("door", fake_spec())
    other = api.post("endpoint-keys/", {"name": "short", "endpoints": ["door"]})
    wait_until(api.is_routed, seconds=30, what="The key is known")
    caller = openai_client(f"{gateway}/door", other["key"])
    assert caller.chat.completions.create(model="fake", messages=[{"role": "user", "content": "Hi"}]).choices
    api.delete(f"endpoint-keys/{other['id']}/")

    def is_refused():
        try:
            caller.chat.completions.create(model="fake", messages=[{"role": "user", "content": "Hi"}])
        except openai.AuthenticationError:
            return True
        return False

    wait_until(is_refused, seconds=15, what="The key is refused")
    assert openai_client(f"{gateway}/door", key).models.list().data
    api.remove("door")


def is_back(api, replica):
    """Whether a replica serves again, as another process than before."""
    now = api.get(f"replicas/{replica['id']}/")
    return now["state"] == "ready" and now["handle"] != replica["handle"]


def test_no_request_that_had_not_begun_is_lost_whatever_dies(panel, api, rigs, gateway, key):
    spec = fake_spec("--ms-per-token", "20", "--slots", "64")
    api.deploy("storm", spec, replicas=2, first_byte_seconds=2, idle_seconds=2, lost_after_seconds=600)
    client = openai_client(f"{gateway}/storm", key)
    with Callers(client, "fake", count=STREAMS, tokens=20) as callers:
        callers.until_ok(STREAMS)
        killed = api.replicas("storm")[0]
        engine_process(killed).kill()
        callers.until_ok(STREAMS)
        # The panel hears of it a moment later: the next one is frozen when this one serves again, and not before.
        wait_until(lambda: is_back(api, killed), seconds=60, what="The killed one serves again")
        api.until_phase("storm", "healthy")

        frozen = engine_process(api.replicas("storm")[1])
        freeze(frozen)
        wait_until(lambda: api.endpoint("storm")["ready"] == 1, seconds=60, what="The frozen one takes no requests")
        callers.until_ok(STREAMS)
        thaw(frozen)
        wait_until(lambda: api.endpoint("storm")["ready"] == 2, seconds=90, what="It serves again")

        rigs[1].kill()
        callers.until_ok(STREAMS)
        rigs[1].start()
        panel.kill("valkey")
        callers.until_ok(STREAMS)
        panel.kill("web")
        callers.until_ok(STREAMS)
        wait_until(panel.is_ready, seconds=90, what="The panel is back")
    assert callers.outcomes["not started"] == 0, callers.errors[:5]
    assert callers.outcomes["cut"] <= 2 * STREAMS, "only what ran on the killed and the frozen one"
    wait_until(lambda: api.endpoint("storm")["phase"] == "healthy", seconds=90, what="All is well again")
    api.remove("storm")
