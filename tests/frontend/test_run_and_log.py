"""A deploy run while it goes and after it: what can be done at each moment, the next step; and the log with its levels."""

import json
import re
from pathlib import Path

import pytest
from django.urls import reverse

from endpoints.models import Replica, Revision, Rollout
from endpoints.services.rollouts import revision_deploy
from frontend.serving.logs import level_of, log_of
from tests.endpoints.world import Site, deployed, open_replicas, reconcile, settle
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.serving import vllm, write

pytestmark = pytest.mark.django_db

CASES = json.loads((Path(__file__).parents[1] / "charts" / "log_cases.json").read_text())


@pytest.fixture
def olga(browser):
    return browser("operator")


@pytest.fixture
def one(people):
    site = Site("rack-1", cards=2)
    endpoint = deployed("chat", engine=vllm(), gpus=1, desired_replicas=1)
    return endpoint, site


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def run_of(endpoint):
    return reverse("endpoint-run", args=[endpoint.pk, Rollout.objects.filter(endpoint=endpoint).latest("pk").pk])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"][:24])
def test_how_grave_a_line_is_follows_from_how_engines_mark_lines(case):
    assert level_of(case["line"], case["before"]) == case["level"]


def test_a_run_that_is_over_offers_its_next_step_and_nothing_to_call_off(olga, one):
    endpoint, site = one
    under_way = text_of(olga.get(f"{run_of(endpoint)}?part=status"))
    assert "Call the rollout off…" in under_way
    settle(sites=[site])
    part = olga.get(f"{run_of(endpoint)}?part=status")
    assert "Call the rollout off…" not in text_of(part)
    assert "Revision 1 serves." in text_of(part)
    link = next(each for each in Page(part.content.decode()).all("a") if "commands to call it" in each.text)
    page = Page(olga.get(reverse("endpoint", args=[endpoint.pk])).content.decode())
    assert link.get("href") == f"{reverse('endpoint', args=[endpoint.pk])}#call"
    assert [each for each in page.all("section") if each.get("id") == "call"]


def test_an_engine_that_ends_and_starts_again_is_said_while_it_does(olga, one):
    endpoint, _site = one
    reconcile()
    Replica.objects.update(restarts=2, detail="It ended with status 1.")
    text = text_of(olga.get(run_of(endpoint)))
    assert "It has ended 2 times and is started again." in text
    assert "It ended with status 1." in text


def test_a_revision_without_cards_is_not_said_to_be_loaded_to_one(olga, people):
    Site("rack-1", cards=0)
    endpoint = deployed("small", engine=vllm(), gpus=0)
    reconcile()
    text = text_of(olga.get(run_of(endpoint)))
    assert "Loaded to GPU" not in text
    assert "Loaded" in text


def test_a_log_shows_when_lines_came_and_can_be_cut_to_errors(olga, one):
    endpoint, site = one
    settle(sites=[site])
    replica = open_replicas(endpoint)[0]
    write(replica, "INFO fine", "WARNING odd", "ERROR broken", "  File engine.py", "INFO on")
    assert [line.text for line in log_of(replica, level="error").lines] == ["ERROR broken", "  File engine.py"]
    assert [line.text for line in log_of(replica, level="warning").lines] == [
        "WARNING odd",
        "ERROR broken",
        "  File engine.py",
    ]
    path = reverse("replica", args=[replica.pk])
    page = Page(olga.get(path).content.decode())
    (log,) = page.all("pre")
    assert re.search(r"\d\d:\d\d:\d\d", log.text)
    cut = olga.get(f"{path}?level=error").content.decode()
    assert "INFO fine" not in cut
    assert "data-topic=" not in cut.split('id="log"')[1].split(">")[0], (
        "a filtered log does not grow by lines that it hides"
    )


def test_a_newer_revision_that_failed_is_deployed_again_and_not_rolled_back_to(olga, one):
    endpoint, site = one
    settle(sites=[site])
    revision_deploy(endpoint_id=endpoint.pk, spec=vllm(version="0.19.0"), actor=OPERATOR)
    Rollout.objects.filter(ended_at=None).update(state="returned", ended_at="2026-01-01T00:00Z")
    Revision.objects.filter(number=2).update(failure="crash_loop")
    type(endpoint).objects.update(target_revision=None)
    assert "Deploy it again…" in text_of(olga.get(reverse("endpoint-revisions", args=[endpoint.pk])))
    asked = text_of(olga.get(reverse("endpoint-act", args=[endpoint.pk, "rollback"]) + "?number=2"))
    assert "Deploy revision 2 of chat again?" in asked
    assert "it fails again" in asked
