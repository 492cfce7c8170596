"""Letting a machine join: the form, the line, the ticks."""

import html
import re
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from fleet.agent import wire
from fleet.models import JoinToken, Operation, Server
from fleet.selectors import join_live
from fleet.services.joining import join_token_create, server_join
from frontend.join import join_progress
from panel.core.clock import now
from tests.fleet.factories import OPERATOR, Machine
from tests.frontend.html import Page
from tests.frontend.leasing import ordered, simulated

FORM = {"name": "gpu-node-09", "provider": "AutoDL", "region": "beijing-3", "way": "machine", "mirror": ""}
AT = datetime(2026, 3, 10, 12, tzinfo=UTC)


def at(seconds):
    return (AT + timedelta(seconds=seconds)).isoformat()


def facts(**given):
    return {
        "expires_at": at(86_400), "revoked_at": None, "token_used_at": None, "facts_at": None, "first_sample_at": None,
        "gpu_count": None, "driver_state": None, "driver_detail": "", "clock_skew_seconds": None,
    } | given  # fmt: skip


def steps(seconds, **given):
    return join_progress(facts(**given), created_at=AT, now=AT + timedelta(seconds=seconds)).steps


def states(seconds, **given):
    return [step.state for step in steps(seconds, **given)]


JOINED = {"token_used_at": at(5), "driver_state": "unknown"}
FACTS = JOINED | {"facts_at": at(8), "gpu_count": 0}
ARRIVED = FACTS | {"first_sample_at": at(9), "gpu_count": 8, "driver_state": "ok"}


def test_ticks_come_one_after_another():
    assert states(1) == ["current", "waiting", "waiting", "waiting"]
    assert states(6, **JOINED) == ["done", "current", "waiting", "waiting"]
    assert states(8, **FACTS) == ["done", "done", "current", "waiting"]
    assert states(9, **ARRIVED) == ["done", "done", "done", "done"]
    assert steps(9, **ARRIVED)[3].title == "8 GPUs found"


@pytest.mark.parametrize(
    ("seconds", "given", "index", "words"),
    [
        (121, {}, 0, "does not reach this panel"),
        (36, JOINED, 1, "A proxy may stop"),
        (39, FACTS, 2, "without readings"),
    ],
)
def test_a_step_that_takes_too_long_says_what_it_usually_is(seconds, given, index, words):
    assert words in steps(seconds, **given)[index].hint
    assert steps(seconds - 2, **given)[index].hint == ""


@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        ({"driver_state": "version_mismatch"}, "critical", "Reboot needed"),
        ({"driver_state": "no_library", "gpu_count": 0}, "warning", "--gpus all"),
        ({"gpu_count": 0}, "warning", "--gpus all"),
    ],
)
def test_gpus_that_do_not_show_bring_the_reason_and_the_fix(given, state, words):
    step = steps(20, **(ARRIVED | given))[3]
    assert step.state == state
    assert words in step.hint


def test_a_clock_that_is_wrong_is_said_at_the_host_facts():
    step = steps(20, **(ARRIVED | {"clock_skew_seconds": -95.0}))[1]
    assert step.state == "warning"
    assert "1 m 35 s behind" in step.hint
    assert steps(20, **(ARRIVED | {"clock_skew_seconds": 2.0}))[1].state == "done"


def test_a_token_that_is_over_says_so_and_nothing_more_is_asked():
    for given in ({"revoked_at": at(3)}, {"expires_at": at(3)}):
        progress = join_progress(facts(**given), created_at=AT, now=AT + timedelta(seconds=9))
        assert progress.is_over
        assert progress.ended
    used = facts(**(JOINED | {"expires_at": at(3)}))  # it was good when the machine used it
    assert not join_progress(used, created_at=AT, now=AT + timedelta(seconds=9)).is_over


def made_line(page):
    return html.unescape(re.search(r'id="join-command" data-copy-text>(.*?)</pre>', page, re.DOTALL)[1])


def test_the_form_gives_one_line_with_a_token_that_a_machine_can_use(browser):
    answer = browser("operator").post("/join/", FORM)
    page = answer.content.decode()
    assert Page(page).faults() == []
    assert "no-store" in answer["Cache-Control"]
    token = re.search(r"fdj_[a-z0-9]{8}_[\w-]{43}", made_line(page))[0]
    server_join(request=wire.JoinRequest(token=token, agent_version="0.1.0"), address="127.0.0.1")
    server = Server.objects.get(name="gpu-node-09")
    assert (server.provider, server.region) == ("AutoDL", "beijing-3")
    assert "--uninstall" in page
    assert subprocess.run(["sh", "-n", "-c", made_line(page)], check=False).returncode == 0


def test_the_line_is_shown_once(browser):
    olga = browser("operator")
    olga.post("/join/", FORM)
    row = JoinToken.objects.get()
    page = olga.get(f"/join/{row.pk}/").content.decode()
    assert "join-command" not in page
    assert "FLEETDECK_JOIN_TOKEN" not in page
    assert row.name in olga.get("/join/").content.decode()


def test_a_container_runs_the_agent_detached_and_a_mirror_goes_into_the_line(browser):
    page = (
        browser("operator")
        .post("/join/", FORM | {"way": "container", "mirror": "https://mirror.example/simple"})
        .content.decode()
    )
    line = made_line(page)
    assert 'sh "$f" --detached' in line
    assert subprocess.run(["sh", "-n", "-c", line], check=False).returncode == 0
    assert "FLEETDECK_MIRROR=https://mirror.example/simple" in line


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "taken"}, "There is a server of that name already."),
        ({"mirror": "ftp://x"}, "A mirror is the http(s) address"),
    ],
)
def test_what_cannot_join_is_said_and_no_token_is_made(browser, change, words):
    Server.objects.create(name="Taken", state="ready", state_changed_at=now(), created_at=now())
    answer = browser("operator").post("/join/", FORM | change)
    assert answer.status_code == 400
    assert words in answer.content.decode()
    assert not JoinToken.objects.exists()


def test_the_dialog_gets_the_form_and_then_the_line_as_fragments(browser):
    olga, htmx = browser("operator"), {"HX-Request": "true"}
    assert "<html" not in olga.get("/join/", headers=htmx).content.decode()
    wrong = olga.post("/join/", FORM | {"name": ""}, headers=htmx)
    assert wrong.status_code == 200  # htmx swaps no other
    assert "This field is required." in wrong.content.decode()
    made = olga.post("/join/", FORM, headers=htmx).content.decode()
    assert "<html" not in made
    assert "fdj_" in made
    assert 'hx-trigger="every 3s, poke"' in made


def test_the_ticks_are_asked_for_until_the_gpus_are_there(browser):
    olga = browser("operator")
    new = join_token_create(name="rack-1", actor=OPERATOR)
    address = f"/join/{new.row.pk}/steps/"
    first = olga.get(address)
    assert first.status_code == 200
    seen = re.search(r'name="seen" value="(\w+)"', first.content.decode())[1]
    assert olga.get(address, {"seen": seen}).status_code == 204
    answer = server_join(request=wire.JoinRequest(token=new.token, agent_version="0.1.0"), address="127.0.0.1")
    second = olga.get(address, {"seen": seen})
    assert 'data-step="token" data-state="done"' in second.content.decode()
    machine = Machine(Server.objects.get(pk=answer.server_id).agent, cards=8)
    sample = wire.HostSample(at_ms=int(now().timestamp() * 1000), monotonic_ms=1, cpu_percent=1.0)
    machine.send(host=wire.HostFacts(hostname="h"), host_samples=[sample])
    last = olga.get(address, {"seen": seen})
    assert last.status_code == 286  # htmx stops asking
    assert "8 GPUs found" in last.content.decode()
    assert f'href="/servers/{answer.server_id}/"' in last.content.decode()
    seen = re.search(r'name="seen" value="(\w+)"', last.content.decode())[1]
    again = olga.get(address, {"seen": seen})  # a frame that came late asks once more: the ticks stay
    assert (again.status_code, again.content, again["HX-Reswap"]) == (286, b"", "none")


def test_a_token_is_taken_back_before_it_is_used_and_not_after(browser):
    olga = browser("operator")
    olga.post("/join/", FORM)
    row = JoinToken.objects.get()
    assert olga.post(f"/join/{row.pk}/revoke/").status_code == 302
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert join_progress(join_live(row), created_at=row.created_at, now=now()).is_over
    used = join_token_create(name="other", actor=OPERATOR)
    server_join(request=wire.JoinRequest(token=used.token, agent_version="0.1.0"), address=None)
    assert olga.post(f"/join/{used.row.pk}/revoke/").status_code == 409


def test_a_token_that_is_not_there_is_not_found(browser):
    assert browser("operator").get("/join/999999/").status_code == 404


def test_a_panel_that_only_this_machine_reaches_says_so(browser, settings):
    settings.IS_PUBLIC_URL_GIVEN, settings.PUBLIC_URL = True, "http://127.0.0.1:8000"
    assert "which is this machine itself" in browser("operator").get("/join/").content.decode()
    settings.PUBLIC_URL = "https://panel.example"
    assert "which is this machine itself" not in browser("operator").get("/join/").content.decode()


def test_an_ordered_machine_that_installs_no_agent_gets_its_own_line_wherever_it_is_looked_at(browser):
    olga, operation = browser("operator"), ordered(simulated(), "box")
    Operation.objects.filter(pk=operation.pk).update(state="succeeded", ended_at=now())
    address = f"/servers/{operation.server_id}/join/"
    pages = (
        f"/operations/{operation.pk}/",
        f"/leases/{operation.lease_id}/",
        f"/servers/{operation.server_id}/",
        address,
    )
    for path in pages:
        text = olga.get(path).content.decode()
        assert f'hx-post="{address}"' in text, path
        assert "does not install its agent by itself" in text
        assert Page(text).faults() == []
        assert "Make its line" not in browser("viewer").get(path).content.decode()
    made = olga.post(address, {"way": "container", "mirror": ""}, headers={"HX-Request": "true"}).content.decode()
    token = re.search(r"fdj_[a-z0-9]{8}_[\w-]{43}", made_line(made))[0]
    assert 'hx-trigger="every 3s, poke"' in made
    answer = server_join(request=wire.JoinRequest(token=token, agent_version="0.1.0"), address="127.0.0.1")
    assert answer.server_id == operation.server_id
    for path in pages[:3]:  # it has joined: nothing is left to offer
        assert "Make its line" not in olga.get(path).content.decode()


def test_the_line_of_a_server_refuses_what_cannot_be_and_needs_the_role(browser):
    operation = ordered(simulated(), "box")
    address = f"/servers/{operation.server_id}/join/"
    wrong = browser("operator").post(address, {"way": "machine", "mirror": "ftp://x"})
    assert wrong.status_code == 400
    assert "A mirror is the http(s) address" in wrong.content.decode()
    assert browser("viewer").post(address, {"way": "machine"}).status_code == 403
    assert browser("operator").get("/servers/999999/join/").status_code == 404
    assert not JoinToken.objects.exists()


def test_adding_a_server_that_is_expected_leads_to_its_own_line(browser):
    olga, operation = browser("operator"), ordered(simulated(), "box")
    led = olga.post("/join/", FORM | {"name": "BOX"})
    assert led["Location"].startswith(f"/servers/{operation.server_id}/join/")
    assert "“box” is expected already." in olga.get(led["Location"]).content.decode()
    inside = olga.post("/join/", FORM | {"name": "box"}, headers={"HX-Request": "true"}).content.decode()
    assert f'hx-post="/servers/{operation.server_id}/join/"' in inside
    assert "<html" not in inside
    assert not JoinToken.objects.exists()


def test_the_sentence_about_the_way_fits_the_address_in_the_line(browser, settings):
    settings.IS_PUBLIC_URL_GIVEN, settings.PUBLIC_URL = True, "http://10.0.0.5:8000"
    text = browser("operator").get("/join/").content.decode()
    assert "HTTPS only" not in text
    assert "talks out to http://10.0.0.5:8000 only, which is plain HTTP" in text
    settings.PUBLIC_URL = "https://panel.example"
    assert "The agent talks out over HTTPS only." in browser("operator").get("/join/").content.decode()


def test_the_warning_of_an_address_of_this_machine_stays_beside_the_line(browser, settings):
    settings.IS_PUBLIC_URL_GIVEN, settings.PUBLIC_URL = True, "http://127.0.0.1:8000"
    made = browser("operator").post("/join/", FORM, headers={"HX-Request": "true"}).content.decode()
    assert "join-command" in made
    assert "which is this machine itself" in made


def test_a_list_of_tokens_on_the_same_page_is_fetched_again_once_one_is_made(browser):
    olga = browser("operator")
    assert 'hx-trigger="join-token-made from:body"' in olga.get("/join/").content.decode()
    made = olga.post("/join/", FORM, headers={"HX-Request": "true"})
    assert made["HX-Trigger"] == "join-token-made"
    part = olga.get("/join/?part=tokens", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "gpu-node-09" in part
    assert 'id="take-back-' in part
