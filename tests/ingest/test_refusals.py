"""Every refusal says why, and a refused report leaves nothing behind."""

import msgspec
import pytest
from django.db import connection
from django.utils import timezone

from fleet.agent import wire
from fleet.models import Agent, AgentStream, Server
from monitoring.ingest.identity import RateLimit
from monitoring.ingest.refusals import Refused
from tests.ingest.panel import Panel, gpu, join, now_ms


def refused(response, status, code):
    assert (response.status_code, response.answer["code"]) == (status, code)
    assert response.answer["message"]
    assert not AgentStream.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM gpu_sample")
        assert cursor.fetchone() == (0,)


def test_a_token_that_is_unknown_revoked_or_of_a_retired_server_is_refused(panel):
    sender = join()
    honest = sender.token
    for token in ("", "nonsense", honest[:-1] + "x", "fda_aaaaaaaa_" + "b" * 43):
        sender.token = token
        response = panel.post(sender, sender.report([gpu()]))
        refused(response, 401, "token_refused")
        assert response.headers["www-authenticate"] == "Bearer"
    sender.token = honest
    Agent.objects.update(revoked_at=timezone.now())
    refused(panel.post(sender, sender.report([gpu()])), 401, "token_refused")


def test_a_retired_server_reports_no_more(panel):
    sender = join()
    Server.objects.update(state="retired", retired_at=timezone.now())
    refused(panel.post(sender, sender.report([gpu()])), 401, "token_refused")


def test_a_token_revoked_while_it_is_cached_is_refused_as_soon_as_the_cache_ends(panel):
    sender = join()
    assert panel.post(sender, sender.report([gpu()])).status_code == 200
    Agent.objects.update(revoked_at=timezone.now())
    for known in panel.ingest.identities._known.values():
        known.until = 0
    assert panel.post(sender, sender.report([gpu()])).status_code == 401


def test_no_bearer_no_report(panel):
    sender = join()
    refused(
        panel.post(sender, sender.report([gpu()]), headers={"authorization": "Basic abc"}), 401, "not_authenticated"
    )


def test_samples_older_than_full_resolution_is_kept_are_refused(panel):
    sender = join()
    refused(panel.post(sender, sender.report([gpu(ages=(49 * 3600,))])), 422, "too_old")


def test_a_batch_that_spans_the_edge_of_retention_is_stored_from_there_on(panel, settings):
    sender = join()
    response = panel.post(sender, sender.report([gpu(ages=(48 * 3600 + 60, 48 * 3600 - 60))]))
    assert response.status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM gpu_sample")
        assert cursor.fetchone() == (1,)


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({"content-type": "text/plain"}, b"x", 415, "unsupported_content_type"),
        ({"content-encoding": "br"}, b"x", 415, "unsupported_encoding"),
        ({"content-encoding": "zstd"}, b"not zstd", 400, "damaged"),
        ({}, b"\xc1", 400, "invalid_report"),
        ({"content-type": "application/json"}, b'{"protocol": 1', 400, "invalid_report"),
        ({}, b"x" * (wire.LIMITS["body_bytes"] + 1), 413, "too_large"),
    ],
)
def test_bodies_that_cannot_be_taken(panel, headers, content, status, code):
    refused(panel.post(join(), None, content=content, headers=headers), status, code)


def test_a_run_without_a_name_and_a_part_that_cannot_be_read(panel):
    sender = join()
    sender.boot_id = "not-a-uuid"
    refused(panel.post(sender, sender.report([gpu()])), 400, "invalid_report")
    sender.boot_id = "0" * 32
    raw = msgspec.to_builtins(sender.report([gpu()])) | {"host": {"hostname": 5}}
    refused(panel.post(sender, None, content=msgspec.msgpack.encode(raw)), 400, "invalid_report")


def test_other_methods_are_not_allowed(panel):
    async def get():
        return await panel._client.get("http://panel/api/agent/v1/report/")

    response = panel.run(get())
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


def test_too_many_reports_are_put_off_and_the_others_go_on(store, settings):
    settings.INGEST_REPORTS_BURST = 3
    settings.INGEST_REPORTS_PER_SECOND = 0.01
    with Panel() as panel:
        eager, calm = join("gpu-1"), join("gpu-2")
        answers = [panel.post(eager, eager.report([gpu()])) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].answer["code"] == "rate_limited"
        assert int(answers[-1].headers["retry-after"]) > 1
        assert panel.post(calm, calm.report([gpu()])).status_code == 200


def test_the_bucket_fills_again_with_time():
    rate = RateLimit(per_second=2, burst=4)
    for _ in range(4):
        rate.take(1, 100.0)
    with pytest.raises(Refused) as caught:
        rate.take(1, 100.1)
    assert caught.value.retry_after_seconds == pytest.approx(0.4)
    rate.take(1, 100.6)
    rate.take(2, 100.6)


def test_times_beyond_any_clock_are_refused_or_kept_at_receive_time(panel):
    sender = join()
    at = now_ms()
    future = panel.post(sender, sender.report([gpu(at_ms=at + 10**9)]))
    assert future.status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT max(at) <= now() FROM gpu_sample")
        assert cursor.fetchone() == (True,)
