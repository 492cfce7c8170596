"""The list of endpoints: what callers meet, what it costs, and a scale of one more or one less from the row."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from endpoints.models import Endpoint, EndpointTraffic, Gateway
from endpoints.services.gateways import gateway_create
from frontend.serving.listing import row_of
from panel.core.clock import now
from tests.endpoints.test_traffic import histogram, leased, span
from tests.endpoints.world import Site, deployed, settle
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.serving import vllm

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(people):
    site = Site("rack-1", cards=2)
    leased(site.server, "19.60")
    gateway = gateway_create(server_id=site.server.pk, actor=OPERATOR)
    endpoint = deployed("chat", engine=vllm(), gpus=1, desired_replicas=1)
    settle(sites=[site], health="ok", running=3.0, waiting=2.0)
    Gateway.objects.update(reported_at=now(), created_at=now() - timedelta(hours=1))
    Endpoint.objects.update(created_at=now() - timedelta(hours=1))
    return endpoint, gateway


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_row_tells_errors_first_byte_tokens_and_the_last_deploy(world):
    endpoint, gateway = world
    span(
        gateway, endpoint, statuses={"2xx": 380, "4xx": 12, "5xx": 6, "cut": 2}, first_byte=histogram(e6=400),
        total=histogram(e10=400), tokens=9000,
    )  # fmt: skip
    row = row_of(endpoint, now())
    assert row.error_percent == pytest.approx(2.0), "5xx and broken off; what the caller did wrong is no error of ours"
    assert row.first_byte_p99_ms == pytest.approx(64, rel=0.03)
    assert row.p99_ms == pytest.approx(1024, rel=0.03)
    assert row.tokens_per_second == pytest.approx(9000 / 900, rel=0.01)
    assert row.deployed_at == endpoint.rollouts.get().started_at
    assert row.spark.startswith("M")


def test_what_nobody_told_is_missing_and_not_zero(world):
    endpoint, gateway = world
    Gateway.objects.update(reported_at=None)
    row = row_of(endpoint, now())
    assert (row.error_percent, row.first_byte_p99_ms, row.tokens_per_second, row.spark) == (None, None, None, "")
    Gateway.objects.update(reported_at=now())
    span(gateway, endpoint, statuses={"2xx": 5}, tokens=None)
    assert row_of(endpoint, now()).tokens_per_second is None, "callers without a key are not counted"
    EndpointTraffic.objects.all().delete()
    assert row_of(endpoint, now()).error_percent is None, "no share of no requests"


def test_one_more_is_asked_with_what_it_costs_and_leads_back_to_the_list(browser, world):
    endpoint, _gateway = world
    olga = browser("operator")
    page = Page(olga.get("/endpoints/").content.decode())
    links = {link.get("href") for link in page.all("a")}
    more = f"{reverse('endpoint-act', args=[endpoint.pk, 'scale'])}?replicas=2&from=list"
    less = f"{reverse('endpoint-act', args=[endpoint.pk, 'scale'])}?replicas=0&from=list"
    assert {more, less} <= links
    asked = olga.get(more)
    assert "+1 = +¥9.80 per hour" in text_of(asked)
    assert "−1 = −¥9.80 per hour" in text_of(olga.get(less))
    done = olga.post(reverse("endpoint-act", args=[endpoint.pk, "scale"]), {"replicas": "2", "from": "list"})
    assert (done.status_code, done.headers["Location"]) == (302, "/endpoints/")
    assert Endpoint.objects.get().desired_replicas == 2


@pytest.mark.usefixtures("world")
def test_viewers_and_ends_have_no_such_links(browser):
    viewer = browser("viewer").get("/endpoints/").content.decode()
    assert "from=list" not in viewer
    Endpoint.objects.update(desired_replicas=0)
    operator = browser("operator").get("/endpoints/").content.decode()
    assert "replicas=-1" not in operator
    assert "replicas=1&amp;from=list" in operator
