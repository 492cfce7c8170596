"""The pages of probes: what a list and one probe tell, what is tried before it is saved, and who may what."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from frontend.probing.waterfall import WIDTH, bars_of, scale_of
from monitoring.probing.models import Probe
from monitoring.probing.services import probe_create
from monitoring.probing.storing import results_store
from panel.core.clock import now
from tests.fleet.factories import OPERATOR
from tests.frontend.html import Page
from tests.frontend.probing import STREAM, probing_world, stream_result
from tests.probing.test_storing import found

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(people):
    return probing_world()


def text_of(answer):
    """Return what is to be read, with single spaces."""
    main = re.sub(r"<[^>]+>", " ", answer.content.decode())
    return re.sub(r"\s+", " ", main)


def test_no_probe_yet_teaches_which_ones_are_good(ada, browser):
    said = text_of(ada.get("/probes/"))
    assert "No probe yet" in said
    assert "P99 299" in said
    assert "needs the role “Operator”" in text_of(browser("viewer").get("/probes/"))


def test_the_list_says_result_percentiles_with_n_uptime_certificate_and_timeout(ada, world):
    answer = ada.get("/probes/")
    assert Page(answer.content.decode()).faults() == []
    said = text_of(answer)
    row = said[said.index("chat through the gateway") :][:900]
    assert "180 ms n = 70" in row
    assert "not enough (n = 70)" in row, "P99 of seventy"
    assert "timeout 12.5 s" in row
    assert "9 d" in row or "10 d" in row
    assert "vantage-1 has no network" in row
    assert "The last 4 checks: 4 failed" in answer.content.decode()
    assert "Wrong answer" in said
    assert "Paused" in said


def test_the_list_takes_the_same_number_of_queries_however_many(ada, world):
    def queries(path):
        with CaptureQueriesContext(connection) as counted:
            ada.get(path)
        return len(counted)

    ada.get("/probes/")  # what is read once for each process
    before = {path: queries(path) for path in ("/probes/", "/probes/?part=rows")}
    for number in range(5):
        extra = probe_create(actor=OPERATOR, name=f"more {number}", target=STREAM, vantages=["panel"])
        results_store(server_id=0, results=[stream_result(extra, now())], known={extra.pk}, at=now())
    assert {path: queries(path) for path in before} == before
    assert before["/probes/"] <= 16


def test_filters_of_the_list_are_in_its_address(ada, world):
    said = text_of(ada.get("/probes/?q=api.example"))
    assert "api" in said
    assert "chat through" not in said
    assert "Nothing matches" in text_of(ada.get("/probes/?kind=icmp"))
    assert "paused" in text_of(ada.get("/probes/?place=agents"))
    assert ada.get("/probes/?kind=%27&place=server:x&page=zz").status_code == 200


def test_one_probe_shows_its_places_apart_with_phases_that_happened_and_those_alone(ada, world):
    answer = ada.get(f"/probes/{world['stream'].pk}/")
    assert Page(answer.content.decode()).faults() == []
    said = text_of(answer)
    assert "the panel" in said
    assert "vantage-1" in said
    places = said[said.index("By place") : said.index("Side by side")]
    assert places.count("cold") == 2, "cold and warm are never pooled"
    assert places.count("warm") == 1
    assert "place without network" in places
    side = said[said.index("Side by side") : said.index("Last results")]
    assert "TLS 23.0 ms" in side
    assert side.count("TLS 23.0 ms") == 1, "a warm connection has no handshake, and no row that says 0"
    assert "at 180.0 ms" in side
    assert "Loop lag 1.3 ms" in side or "Loop lag 1.2 ms" in side
    assert "suspect" in said


def test_secrets_are_nowhere_on_the_pages(ada, world):
    for path in ("", "edit/", "?result=0.cold.1"):
        shown = ada.get(f"/probes/{world['stream'].pk}/{path}").content.decode()
        assert "bearer-very-secret" not in shown
    assert "very-secret-key" not in ada.get(f"/probes/{world['stream'].pk}/").content.decode()
    assert "Bearer ••••" in ada.get(f"/probes/{world['stream'].pk}/").content.decode()


def test_what_a_server_said_is_text(ada, world):
    shown = ada.get(f"/probes/{world['broken'].pk}/").content.decode()
    assert "503 &lt;b&gt;overloaded&lt;/b&gt;" in shown
    assert "<b>overloaded</b>" not in shown


def test_one_result_can_be_linked_to(ada, world):
    listed = ada.get(f"/probes/{world['stream'].pk}/").content.decode()
    key = re.search(r"\?result=(\d+\.cold\.\d+)#result", listed)[1]
    shown = ada.get(f"/probes/{world['stream'].pk}/?result={key}").content.decode()
    assert 'id="result"' in shown
    for wrong in ("0.cold.99", "x", "1.2", f"0.cold.{'9' * 14}", "-1.cold.5"):
        assert ada.get(f"/probes/{world['stream'].pk}/?result={wrong}").status_code == 200


def test_percentiles_over_time_are_drawn_where_there_are_enough_and_say_their_steps(ada, world):
    shown = ada.get(f"/probes/{world['stream'].pk}/?range=24h&place=0.cold").content.decode()
    assert 'class="curve curve-p50"' in shown
    history = shown[shown.index('id="probe-history"') :]
    assert "P99" in history
    assert "limit 500" in history
    assert re.search(r'plot-name">.*?P99 <span class="hint">not enough', history, re.DOTALL)


def test_a_probe_is_made_tried_changed_paused_and_removed(browser, world, monkeypatch):
    operator = browser("operator")
    asked = []

    def answer(target, connection):
        asked.append(target)
        return found(world["broken"], now(), connection=connection, tcp_ms=3.0, total_ms=9.0)

    monkeypatch.setattr("monitoring.probing.services.probe_now", answer)
    given = {
        "kind": "http", "name": "new one", "host": "web.example", "is_tls": "on", "path": "/x", "vantages": ["panel"],
        "interval_seconds": "60", "timeout_seconds": "5", "connections": "both", "metric": "e2e", "method": "GET",
        "is_verified": "on", "statuses": "200, 204", "headers": "X-Team: search", "bearer": "abc", "threshold_ms": "800",
    }  # fmt: skip
    tried = operator.post("/probes/new/", {**given, "act": "check"}, headers={"HX-Request": "true"})
    assert "TCP" in text_of(tried)
    assert "<html" not in tried.content.decode()
    assert Probe.objects.filter(name="new one").count() == 0
    assert (asked[0].bearer, asked[0].default_port, asked[0].timeout_seconds) == ("abc", 443, 5)
    made = operator.post("/probes/new/", {**given, "act": "save"})
    probe = Probe.objects.get(name="new one")
    assert made["Location"] == f"/probes/{probe.pk}/"
    assert probe.target["statuses"] == [200, 204]
    assert probe.target["headers"] == {"X-Team": "search"}
    assert probe.bearer == "abc"

    form = operator.get(f"/probes/{probe.pk}/edit/").content.decode()
    assert Page(form).faults() == []
    operator.post(f"/probes/{probe.pk}/edit/", {**given, "bearer": "", "path": "/y", "act": "save"})
    probe.refresh_from_db()
    assert (probe.target["path"], probe.bearer) == ("/y", "abc"), "an empty bearer keeps the one that is there"

    ran = operator.post(f"/probes/{probe.pk}/run/", headers={"HX-Request": "true"})
    assert "other places look too" in text_of(ran)
    operator.post(f"/probes/{probe.pk}/pause/")
    probe.refresh_from_db()
    assert not probe.is_enabled
    operator.post(f"/probes/{probe.pk}/pause/", {"is_enabled": "yes"})
    operator.post(f"/probes/{probe.pk}/remove/", {"typed_name": "wrong"})
    assert Probe.objects.filter(pk=probe.pk).exists()
    operator.post(f"/probes/{probe.pk}/remove/", {"typed_name": "new one"})
    assert not Probe.objects.filter(pk=probe.pk).exists()


@pytest.mark.parametrize("kind", ["http", "chat", "completion", "tcp", "tls", "dns", "kserve_ready", "kserve_infer",
                                  "grpc_health", "icmp"])  # fmt: skip
def test_every_kind_has_a_form_of_its_own_fields_that_makes_a_probe(ada, kind):
    shown = ada.get(f"/probes/new/?kind={kind}")
    assert Page(shown.content.decode()).faults() == []
    given = {
        "kind": kind, "name": kind, "host": "host.example", "port": "8443", "path": "/v1", "vantages": ["panel"],
        "interval_seconds": "30", "timeout_seconds": "10", "connections": "cold", "metric": "e2e",
    }  # fmt: skip
    answer = ada.post("/probes/new/", {**given, "act": "save"})
    assert answer.status_code == 302, text_of(answer)
    assert Probe.objects.get(name=kind).target["kind"] == kind
    assert ada.get(f"/probes/{Probe.objects.get(name=kind).pk}/").status_code == 200


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"host": "https://web.example"}, "write a name or an address"),
        ({"headers": "nonsense"}, "Name: value"),
        ({"statuses": "fine"}, "100 to 599"),
        ({"vantages": []}, "required"),
        ({"path": "x y"}, "is no path"),
        ({"name": ""}, "required"),
    ],
)
def test_what_cannot_be_probed_is_said_at_its_field_and_nothing_is_made(ada, changes, said):
    given = {
        "kind": "http", "name": "n", "host": "web.example", "vantages": ["panel"], "interval_seconds": "60",
        "timeout_seconds": "5", "connections": "cold", "metric": "e2e", "path": "/",
    }  # fmt: skip
    answer = ada.post("/probes/new/", {**given, **changes, "act": "save"})
    assert answer.status_code == 400
    assert said in text_of(answer)
    assert Probe.objects.count() == 0


def test_viewers_see_and_change_nothing(browser, world):
    viewer, number = browser("viewer"), world["stream"].pk
    shown = viewer.get(f"/probes/{number}/").content.decode()
    assert "Run now" not in shown
    assert Page(shown).faults() == []
    for path in ("run/", "pause/", "remove/", "edit/"):
        assert viewer.post(f"/probes/{number}/{path}", {"typed_name": world["stream"].name}).status_code == 403
    assert viewer.get("/probes/12345/").status_code == 404


# ---- phases


def test_bars_lie_where_their_phase_was_and_never_outside():
    result = {
        "dns_ms": 4.0, "tcp_ms": 11.0, "tls_ms": 23.0, "send_ms": 0.2, "wait_ms": 61.8, "transfer_ms": 300.0,
        "ttfb_ms": 100.0, "ttft_ms": 180.0, "total_ms": 400.0,
    }  # fmt: skip
    bars = {bar.name: bar for bar in bars_of(result, scale_ms=scale_of(result))}
    assert bars["tcp"].at_ms == 4.0
    assert bars["tls"].at_ms == 15.0
    assert bars["wait"].at_ms == pytest.approx(38.2)
    assert bars["transfer"].begin == pytest.approx(250.0)
    assert bars["total"].length == WIDTH
    assert all(bar.begin >= 0 and bar.begin + bar.length <= WIDTH + 0.1 for bar in bars.values())


def test_a_phase_that_did_not_happen_has_no_bar():
    warm = {"send_ms": 0.1, "wait_ms": 9.0, "ttfb_ms": 9.1, "total_ms": 9.5}
    assert {bar.name for bar in bars_of(warm, scale_ms=9.5)} == {"send", "wait", "ttfb", "total"}
    assert bars_of({}, scale_ms=0.0) == []
    assert [bar.name for bar in bars_of({"dns_ms": 0.0, "elapsed_ms": 0.0}, scale_ms=0.0)] == ["dns"]
