"""Fetching an image: percent from the layers' events, errors within an answer that is 200."""

import json

import pytest

from fleet.agent.engines.contract import StartError
from fleet.agent.engines.pull import Progress, pull


class Answer:
    def __init__(self, events, status_code=200):
        self.events, self.status_code = events, status_code
        self.text = json.dumps(events[0]) if events else ""

    def iter_lines(self):
        return [json.dumps(event).encode() for event in self.events]

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


class Client:
    """A client of the API that gives one answer and notes what it was asked."""

    base_url, api_version = "http+docker://localhost", "1.41"

    def __init__(self, *events, status_code=200):
        self.answer, self.asked = Answer(list(events), status_code), None

    def post(self, url, params, **options):
        self.asked = (url, params, options)
        return self.answer


def layer(name, status, current=None, total=None):
    detail = {} if total is None else {"current": current, "total": total}
    return {"id": name, "status": status, "progressDetail": detail}


def test_percent_follows_the_bytes_of_all_layers_and_never_falls():
    events = [
        layer("a", "Pulling fs layer"),
        layer("b", "Pulling fs layer"),
        layer("b", "Already exists"),
        layer("a", "Downloading", 50, 100),
        layer("a", "Download complete"),
        layer("a", "Extracting", 100, 100),
        layer("a", "Pull complete"),
    ]
    progress = Progress()
    percents = [progress.percent_after(event) for event in events]
    assert percents == sorted(percents)
    assert percents[2] == 50  # nothing of sizes is known yet: a layer is a layer
    assert percents[3] == 70  # half of a's download is 40 % of it, b is there
    assert percents[-1] == 99  # the end is said by the image that is there


def test_large_layers_weigh_more():
    progress = Progress()
    progress.percent_after(layer("large", "Downloading", 0, 990))
    progress.percent_after(layer("small", "Downloading", 1, 10))
    assert progress.percent_after(layer("small", "Pull complete")) == 1


@pytest.mark.parametrize(
    ("said", "is_permanent"),
    [
        ("manifest for org/engine:nope not found: manifest unknown", True),
        ("pull access denied for org/engine", True),
        ("net/http: TLS handshake timeout", False),
        ("toomanyrequests: You have reached your pull rate limit", False),
    ],
)
def test_an_error_within_the_stream_is_a_failure(said, is_permanent):
    client = Client({"status": "Pulling from org/engine"}, {"errorDetail": {"message": said}, "error": said})
    with pytest.raises(StartError, match="could not be fetched") as caught:
        pull(client, "org/engine:nope", lambda percent: None)
    assert (caught.value.reason, caught.value.is_permanent) == ("pull_failed", is_permanent)


def test_a_refusal_of_the_whole_request_is_told_in_the_engines_words():
    client = Client({"message": "repository name must be lowercase: invalid reference format"}, status_code=400)
    with pytest.raises(StartError, match="must be lowercase") as caught:
        pull(client, "Org/Engine", lambda percent: None)
    assert caught.value.is_permanent


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("org/engine", {"fromImage": "org/engine", "tag": "latest"}),
        ("registry.example:5000/org/engine:v1", {"fromImage": "registry.example:5000/org/engine", "tag": "v1"}),
        ("org/engine@sha256:ab", {"fromImage": "org/engine", "tag": "sha256:ab"}),
    ],
)
def test_names_tags_and_digests_are_asked_for_as_the_api_wants_them(image, asked):
    client = Client({"status": "Status: Image is up to date"})
    pull(client, image, lambda percent: None)
    assert client.asked[1] == asked


def test_a_pull_that_nobody_wants_any_more_ends():
    class EnoughError(Exception):
        pass

    def tell(percent):
        if percent >= 10:
            raise EnoughError

    client = Client(layer("a", "Downloading", 1, 100), layer("a", "Downloading", 60, 100), {"error": "never read"})
    with pytest.raises(EnoughError):
        pull(client, "org/engine", tell)
