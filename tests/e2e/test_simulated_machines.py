"""Recovery on a whole panel: a machine is ordered and reports, is ended and falls silent, and is built again from its record."""

import pytest

from tests.e2e.running import RunningPanel, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

PATIENCE = 90
AGENT_STATE = "simulation/machines/{}/state"


def rows(api, path, **query):
    return api.get(path, params=query).json()["results"]


def settled(api, path, **wanted):
    """Wait until what an address tells is so; return it."""

    def is_so():
        found = api.get(path).json()
        return found if all(found[name] == value for name, value in wanted.items()) else None

    return wait_until(is_so, seconds=PATIENCE, what=f"{path} with {wanted}")


def ordered(api, account, **body):
    """Order one A100 machine; return the operation once it has ended."""
    offers = wait_until(lambda: rows(api, "/api/v1/offers/", account=account), seconds=PATIENCE, what="Offers")
    offer = next(each for each in offers if each["gpu_model"] == "A100 SXM 80GB")
    plan = f"/api/v1/offers/{offer['id']}/plan/"
    wait_until(lambda: api.get(plan).json()["installs_agent"], seconds=PATIENCE, what="What runs the machines")
    answer = api.post("/api/v1/orders/", json={"account": account, "offer": offer["id"], **body})
    assert answer.status_code == 202, answer.text
    return answer.json()


def cards_of(api, server):
    return {gpu["uuid"]: gpu["state"] for gpu in rows(api, "/api/v1/gpus/", server=server)}


def built(api, operation, server):
    """Wait until an order has succeeded and its server is ready with its cards; return these."""
    ended = settled(api, f"/api/v1/operations/{operation['id']}/", state="succeeded")
    assert [step["state"] for step in ended["steps"]] == ["done", "done", "done"]
    assert ended["steps"][-1]["name"] == "join"
    found = settled(api, f"/api/v1/servers/{server}/", state="ready")
    assert (found["provider"], found["region"], found["is_simulated"]) == ("simulated", "south-1", True)
    assert len(cards_of(api, server)) == 4
    assert set(cards_of(api, server).values()) == {"ok"}
    return cards_of(api, server)


def test_a_server_is_ordered_reports_is_ended_and_is_built_again_from_its_record():
    with RunningPanel("--demo", "--servers", "1", "--no-agent") as panel, panel.client() as api:
        body = {"name": "trial", "kind": "simulated", "options": {"boot_seconds": "1"}}
        account = api.post("/api/v1/accounts/", json=body).json()["id"]
        first = ordered(api, account, name="phoenix")
        server, lease = first["server"], first["lease"]
        before = built(api, first, server)
        state = panel.directory / "data" / AGENT_STATE.format("sim-1")
        assert state.is_dir()

        assert api.post(f"/api/v1/leases/{lease}/terminate/", json={}).status_code == 202
        settled(api, f"/api/v1/leases/{lease}/", state="terminated")
        settled(api, f"/api/v1/servers/{server}/", state="retired")
        wait_until(lambda: not state.exists(), seconds=PATIENCE, what="The end of the machine's agent")

        again = ordered(api, account, server=server)
        assert (again["server"], api.get(f"/api/v1/servers/{server}/").json()["state"]) == (server, "pending")
        after = built(api, again, server)
        assert before.keys().isdisjoint(after)
        assert len(rows(api, "/api/v1/leases/", server=server, is_open="false")) == 1
