"""An operator and an endpoint that serves, for tests of what people do on the pages of endpoints."""

import re

import pytest
from django.urls import reverse

from tests.endpoints.world import Site, deployed, settle
from tests.frontend.html import Page
from tests.frontend.serving import vllm


@pytest.fixture
def olga(browser):
    return browser("operator")


@pytest.fixture
def one(people):
    """A server with two cards and an endpoint whose one replica serves."""
    site = Site("rack-1", cards=2)
    endpoint = deployed("chat", engine=vllm(), gpus=1, desired_replicas=1)
    settle(sites=[site])
    return endpoint, site


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def act(endpoint, name, query=""):
    return reverse("endpoint-act", args=[endpoint.pk, name]) + query


def fields_with_errors(answer):
    page = Page(answer.content.decode())
    return {e.get("name") for e in page.all("input", "select", "textarea") if e.get("aria-invalid") == "true"}
