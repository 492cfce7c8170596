"""Endpoints over the API: deployed, looked at, changed, refused in words."""

import pytest

from endpoints.models import ApiKey, Replica, Revision
from tests.endpoints.world import deployed, settle, spec, status

pytestmark = pytest.mark.django_db

ROOT = "/api/v1"
VLLM = {"kind": "vllm", "model": "Qwen/Qwen3-8B", "version": "0.18.0", "arguments": {"max_model_len": 8192}}


def post(client, path, body=None):
    return client.post(f"{ROOT}/{path}", body or {}, format="json")


def test_an_endpoint_is_deployed_scaled_and_deleted(operator_client, site):
    answer = post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM, "desired_replicas": 2, "note": "first"})
    assert answer.status_code == 202, answer.content
    made = answer.json()
    assert (made["phase"], made["engine"], made["target_revision"], made["active_revision"]) == (
        "scaling",
        "vllm",
        1,
        None,
    )
    settle(sites=[site])
    shown = operator_client.get(f"{ROOT}/endpoints/chat/").json()
    assert (shown["phase"], shown["ready"], shown["active_revision"]) == ("healthy", 2, 1)
    replicas = operator_client.get(f"{ROOT}/replicas/?endpoint={shown['id']}&is_open=true").json()["results"]
    assert {each["gpus"][0] for each in replicas} == {card.uuid for card in site.machine.cards}
    assert post(operator_client, "endpoints/chat/scale/", {"desired_replicas": 1}).json()["desired_replicas"] == 1
    settle(sites=[site])
    assert operator_client.delete(f"{ROOT}/endpoints/chat/").status_code == 202
    settle(sites=[site])
    assert operator_client.get(f"{ROOT}/endpoints/chat/").status_code == 404


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"arguments": {"max_model_len": 0}}, "max_model_len"),
        ({"arguments": {"max_modell_len": 1}}, "max_modell_len"),
        ({"kind": "vlm"}, "kind"),
        ({"secret_environment": {"HF_TOKEN": "nowhere"}}, "secret_environment"),
        ({"extra_arguments": ["--port", "1"]}, "extra"),
    ],
)
def test_a_spec_that_cannot_run_is_refused_at_its_argument(operator_client, changes, field):
    answer = post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM | changes})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == field
    assert not Revision.objects.exists()


def test_a_name_is_taken_once(operator_client):
    assert post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM}).status_code == 202
    taken = post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM})
    assert (taken.status_code, taken.json()["errors"][0]["code"]) == (409, "name_taken")


def test_a_revision_is_rolled_out_compared_and_returned_from(operator_client, site):
    post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM})
    settle(sites=[site])
    changed = VLLM | {"arguments": {"max_model_len": 16_384}}
    assert post(operator_client, "endpoints/chat/revisions/", {"spec": changed}).json()["to_revision"] == 2
    settle(sites=[site])
    [difference] = operator_client.get(f"{ROOT}/endpoints/chat/revisions/2/diff/?with=1").json()
    assert difference == {"path": "arguments.max_model_len", "before": 8192, "after": 16_384}
    assert post(operator_client, "endpoints/chat/rollback/").status_code == 202
    settle(sites=[site])
    assert operator_client.get(f"{ROOT}/endpoints/chat/").json()["active_revision"] == 1
    states = [each["state"] for each in operator_client.get(f"{ROOT}/endpoints/chat/rollouts/").json()["results"]]
    assert states == ["succeeded", "succeeded", "succeeded"]


def test_a_rollout_that_fails_returns_and_says_why(operator_client, site):
    post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM})
    settle(sites=[site])
    post(operator_client, "endpoints/chat/revisions/", {"spec": VLLM | {"version": "0.17.0"}})
    from tests.endpoints.world import reconcile

    reconcile()
    old, new = sorted(site.orders(), key=lambda order: order.id)
    line = "ValueError: max seq len (8192) is larger than the KV cache"
    site.say(status(old, state="ready"), status(new, state="failed", reason="exited", detail=line))
    settle(sites=[site])
    shown = operator_client.get(f"{ROOT}/endpoints/chat/").json()
    assert (shown["phase"], shown["active_revision"], shown["ready"]) == ("healthy", 1, 1)
    [rollout, _first] = operator_client.get(f"{ROOT}/endpoints/chat/rollouts/").json()["results"]
    assert (rollout["state"], rollout["reason"], rollout["detail"]) == ("returned", "exited", line)
    assert operator_client.get(f"{ROOT}/endpoints/chat/revisions/2/").json()["failure_line"] == line


def test_a_rollout_is_paused_resumed_and_called_off(operator_client, site):
    assert post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM}).status_code == 202
    settle(sites=[site])
    assert post(operator_client, "endpoints/chat/pause/").json()["errors"][0]["code"] == "no_rollout"
    post(operator_client, "endpoints/chat/revisions/", {"spec": VLLM | {"version": "0.17.0"}})
    assert post(operator_client, "endpoints/chat/pause/").status_code == 202
    settle(sites=[site])
    assert operator_client.get(f"{ROOT}/endpoints/chat/").json()["phase"] == "paused"
    assert len(site.orders()) == 1
    assert post(operator_client, "endpoints/chat/resume/").status_code == 202
    assert post(operator_client, "endpoints/chat/cancel/").status_code == 202
    settle(sites=[site])
    assert operator_client.get(f"{ROOT}/endpoints/chat/").json()["active_revision"] == 1


def test_a_log_is_kept_in_order_once_and_bounded(operator_client, site):
    deployed(engine=spec())
    settle(sites=[site])
    [order] = site.orders()
    agent = {"HTTP_AUTHORIZATION": f"Bearer {site.token}"}

    def tell(*chunks):
        body = {"chunks": [{"replica": order.id, "generation": 1, **chunk} for chunk in chunks]}
        return operator_client.__class__().post("/api/agent/v1/replica-logs/", body, format="json", **agent)

    assert (
        tell({"offset": 8, "text": "second\n", "skipped_bytes": 3}, {"offset": 0, "text": "first\n"}).status_code == 204
    )
    tell({"offset": 0, "text": "first\n"})
    text = operator_client.get(f"{ROOT}/replicas/{order.id}/log/").content.decode()
    assert text == "first\n… 3 bytes …\nsecond\n"
    for part in range(40):
        tell({"offset": 100_000 + part * 65_000, "text": "x" * 64_999 + "\n"})
    assert len(operator_client.get(f"{ROOT}/replicas/{order.id}/log/").content) < 2_300_000


def test_an_agent_without_a_token_or_with_too_much_is_refused(client, site):
    address = "/api/agent/v1/replicas/"
    assert client.post(address, {}, content_type="application/json").status_code == 401
    headers = {"Authorization": f"Bearer {site.token}"}
    big = client.post(address, b"x" * 600_000, content_type="application/json", headers=headers)
    assert (big.status_code, big.json()["code"]) == (413, "too_large")
    assert client.post(address, b"{}", content_type="application/json", headers=headers).status_code == 400
    assert client.get("/api/agent/v1/routes/", headers=headers).status_code == 404


def test_a_key_is_shown_once_and_kept_as_its_hash(operator_client, viewer_client):
    deployed()
    made = post(operator_client, "endpoint-keys/", {"name": "app", "endpoints": ["chat"], "requests_per_minute": 60})
    assert made.status_code == 201
    assert made.json()["key"].startswith("fdk_")
    key = ApiKey.objects.get()
    assert made.json()["key"] not in operator_client.get(f"{ROOT}/endpoint-keys/").content.decode()
    assert len(key.digest) == 64
    assert key.digest not in operator_client.get(f"{ROOT}/endpoint-keys/").content.decode()
    assert viewer_client.get(f"{ROOT}/endpoint-keys/").status_code == 403
    wrong = post(operator_client, "endpoint-keys/", {"name": "app", "endpoints": ["nowhere"]})
    assert wrong.status_code == 400


def test_a_secret_goes_to_the_engine_and_nowhere_else(operator_client, site):
    put = operator_client.put(f"{ROOT}/secrets/hub/", {"value": "hf_canary"}, format="json")
    assert put.status_code == 200
    body = {"name": "chat", "spec": VLLM | {"secret_environment": {"HF_TOKEN": "hub"}}}
    assert post(operator_client, "endpoints/", body).status_code == 202
    settle(sites=[site])
    [order] = site.orders()
    assert order.secrets["HF_TOKEN"] == "hf_canary"
    assert "hf_canary" not in str(order.environment) + str(order.command)
    for path in ("endpoints/", "endpoints/chat/", "secrets/", "replicas/", "endpoints/chat/revisions/", "audit/"):
        assert "hf_canary" not in operator_client.get(f"{ROOT}/{path}").content.decode()


def test_a_list_of_endpoints_costs_the_same_however_many_there_are(operator_client, django_assert_max_num_queries):
    for number in range(12):
        deployed(f"chat-{number}")
    with django_assert_max_num_queries(6):
        listed = operator_client.get(f"{ROOT}/endpoints/").json()["results"]
    assert len(listed) == 12
    assert Replica.objects.count() == 0


def test_engines_tell_their_arguments(viewer_client):
    listed = {each["kind"]: each for each in viewer_client.get(f"{ROOT}/engines/").json()}
    assert {"vllm", "sglang", "tgi", "triton", "trtllm", "comfyui", "transformers", "llamacpp", "custom"} == set(listed)
    limit = listed["vllm"]["arguments"]["properties"]["max_num_seqs"]
    assert (limit["type"], limit["flag"]) == ("integer", "--max-num-seqs")
    assert limit["description"]
    assert viewer_client.get(f"{ROOT}/engines/vllm/").json() == listed["vllm"]
    assert viewer_client.get(f"{ROOT}/engines/vlm/").status_code == 404


def test_a_server_that_cannot_reach_hugging_face_loads_from_modelscope(operator_client, site):
    changes = {"uses_modelscope": True, "image_prefix": "m.daocloud.io"}
    assert operator_client.patch(f"{ROOT}/serving/{site.server.pk}/", changes, format="json").status_code == 200
    assert post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM}).status_code == 202
    settle(sites=[site])
    [order] = site.orders()
    assert order.environment["VLLM_USE_MODELSCOPE"] == "True"
    assert order.image.startswith("m.daocloud.io/docker.io/vllm/")


def test_a_proxy_of_ones_own_gets_the_same_replicas_and_no_secret(operator_client, viewer_client, site):
    assert post(operator_client, "endpoints/", {"name": "chat", "spec": VLLM}).status_code == 202
    operator_client.patch(f"{ROOT}/serving/{site.server.pk}/", {"address": "10.0.0.7"}, format="json")
    settle(sites=[site])
    [order] = site.orders()
    for file in ("nginx.conf", "haproxy.cfg"):
        answer = operator_client.get(f"{ROOT}/endpoints/chat/{file}/?port=9000")
        text = answer.content.decode()
        assert answer.status_code == 200, text
        assert f"10.0.0.7:{order.port}" in text
        assert "9000" in text
        assert order.upstream_key not in text
        assert viewer_client.get(f"{ROOT}/endpoints/chat/{file}/").status_code == 403
        assert operator_client.get(f"{ROOT}/endpoints/chat/{file}/?port=x").status_code == 400


def test_the_last_lines_of_all_replicas_are_read_at_once(operator_client, viewer_client, site):
    deployed(engine=spec(), desired_replicas=2)
    settle(sites=[site])
    agent = {"HTTP_AUTHORIZATION": f"Bearer {site.token}"}
    chunks = [
        {"replica": order.id, "generation": 1, "offset": 0, "text": f"one\ntwo\nof {order.id}\n"}
        for order in site.orders()
    ]
    sent = operator_client.__class__().post("/api/agent/v1/replica-logs/", {"chunks": chunks}, format="json", **agent)
    assert sent.status_code == 204
    text = viewer_client.get(f"{ROOT}/endpoints/chat/logs/?lines=2").content.decode()
    assert text.count("==> replica") == 2
    assert "one" not in text
    assert all(f"two\nof {order.id}" in text for order in site.orders())
    assert viewer_client.get(f"{ROOT}/endpoints/chat/logs/?lines=0").status_code == 400


def test_sizing_tells_where_a_model_fits(operator_client, site):
    shape = {"parameters": 8_000_000_000, "layers": 36, "attention_heads": 32, "kv_heads": 8, "head_size": 128}
    told = post(operator_client, "sizing/", {**shape, "context": 8192, "concurrency": 16, "engine": "vllm"}).json()
    [row] = told["servers"]
    assert (row["name"], row["fits"], row["tensor_parallel_size"], row["free"]) == ("rack-1", "fits", 1, 2)
    assert 16e9 < row["need_bytes"] < row["memory_bytes"]
    assert row["price_per_hour"] is None
    assert told["suggested_arguments"]["max_model_len"] == 8192
    huge = post(operator_client, "sizing/", {**shape, "parameters": 10**12, "context": 8192, "concurrency": 1}).json()
    assert huge["servers"][0]["fits"] == "does_not"
    wrong = post(operator_client, "sizing/", {"layers": 2, "context": 1, "concurrency": 1})
    assert (wrong.status_code, wrong.json()["errors"][0]["attr"]) == (400, "parameters")


def test_half_a_price_is_refused_at_its_field(operator_client):
    deployed()
    body = {"placement": {"max_price": {"currency": "USD"}}}
    answer = operator_client.patch(f"{ROOT}/endpoints/chat/", body, format="json")
    assert (answer.status_code, answer.json()["errors"][0]["attr"]) == (400, "placement.max_price")
