"""Pages of alerts: what fires with whom it was told, acts of people, rules with a replay, silences with what they hide."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from monitoring.alerts.models import Episode, Rule, Silence
from monitoring.alerts.services import rules_ensure
from monitoring.models import Probe
from panel.accounts.models import AuditEntry
from panel.core.clock import now
from tests.accounts.people import person

pytestmark = pytest.mark.django_db


def page_client(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def rules():
    rules_ensure(at=now())


@pytest.fixture
def operator():
    return page_client(person("olga", role="operator"))


@pytest.fixture
def viewer():
    return page_client(person("vera", role="viewer"))


@pytest.fixture
def probe():
    target = {"kind": "tcp", "host": "127.0.0.1", "port": 9}
    return Probe.objects.create(name="chat", target=target, vantages=["panel"], created_at=now())


def episode(probe, **changes):
    at = now() - timedelta(minutes=12)
    figures = {
        "over": 9, "n": 60, "window_seconds": 1800, "limit_ms": 1000.0, "worst_ms": 2400.0, "failures": 0, "place": 0,
        "connection": "cold", "probe": probe.pk, "metric": "e2e",
    }  # fmt: skip
    given = {
        "family": "latency", "subject_kind": "probe", "subject_id": probe.pk, "subject_name": "chat",
        "severity": "critical", "rules": ["p99_fast"], "opened_at": at, "changed_at": at, "incident": {},
        "evidence": {"p99_fast": figures},
    }  # fmt: skip
    return Episode.objects.create(**given | changes)


def shown(client, name, *args, **query):
    answer = client.get(reverse(name, args=args), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_list_says_in_one_sentence_what_fires_against_which_limit(viewer, probe):
    episode(probe)
    page = shown(viewer, "alerts")
    assert "9 of 60 probes over 1.00 s in 30 min, worst 2.40 s" in page
    assert "Nobody was told" in page
    assert "Acknowledge<" not in page, "a viewer has no acts"


def test_what_is_muted_or_over_stands_under_a_tab_of_its_own(viewer, probe):
    episode(probe, muted_by="silence")
    assert "9 of 60" not in shown(viewer, "alerts")
    assert "9 of 60" in shown(viewer, "alerts", state="silenced")
    Episode.objects.update(resolved_at=now())
    assert "9 of 60" in shown(viewer, "alerts", state="history")


def test_one_alert_shows_its_evidence_its_timeline_and_takes_notes(operator, probe):
    found = episode(probe)
    operator.post(reverse("alert-act", args=[found.pk]), {"act": "note", "text": "<b>looked</b>"})
    operator.post(reverse("alert-act", args=[found.pk]), {"act": "acknowledge"})
    page = shown(operator, "alert", found.pk)
    assert "&lt;b&gt;looked&lt;/b&gt;" in page
    assert "acknowledged by olga" in page
    found.refresh_from_db()
    assert found.acknowledged_until > now() + timedelta(hours=23)
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {"alert.note", "alert.acknowledge"}


def test_an_alert_is_silenced_from_its_row_for_what_it_is_about(operator, probe):
    found = episode(probe)
    operator.post(reverse("alert-act", args=[found.pk]), {"act": "silence", "length": "1h", "back": "list"})
    made = Silence.objects.get()
    assert made.matchers == {"subject": f"probe:{probe.pk}", "family": "latency"}
    assert timedelta(minutes=59) < made.ends_at - made.starts_at < timedelta(minutes=61)


def test_a_viewer_may_look_and_not_act(viewer, probe, rules):
    found = episode(probe)
    rule = Rule.objects.get(key="p99_fast")
    for name, args in (("alert-act", [found.pk]), ("rule-act", [rule.pk]), ("silence-new", [])):
        assert viewer.post(reverse(name, args=args)).status_code == 403
    for name, args in (("rules", []), ("silences", []), ("rule", [rule.pk]), ("alert", [found.pk])):
        shown(viewer, name, *args)


def test_a_rule_is_changed_and_replayed_with_what_is_typed(operator, probe, rules):
    rule = Rule.objects.get(key="p99_fast")
    answer = operator.post(
        reverse("rule-act", args=[rule.pk]), {"act": "preview", "subject": f"probe:{probe.pk}", "is_enabled": "on"}
    )
    assert "It would have fired 0 times in seven days" in answer.content.decode()
    operator.post(reverse("rule-act", args=[rule.pk]), {"act": "save", "limit_ms": "1500", "is_enabled": "on"})
    rule.refresh_from_db()
    assert rule.settings == {"limit_ms": 1500.0}
    assert rule.version == 1


def test_a_rule_of_ones_own_is_made_and_one_that_can_never_end_is_refused(operator, rules):
    typed = {"name": "hot", "series": "gpu.temperature_celsius", "operator": "above", "limit": "85", "clear": "90"}
    answer = operator.post(reverse("rule-new"), typed)
    assert answer.status_code == 422
    assert "the clear level is at most the limit" in answer.content.decode()
    operator.post(reverse("rule-new"), {**typed, "clear": "80", "severity": "warning"})
    made = Rule.objects.get(name="hot")
    assert made.settings["clear"] == 80
    assert "gpu.temperature_celsius above 85" in shown(operator, "rules")


def test_a_silence_shows_what_it_would_hide_and_one_of_nothing_wants_a_second_yes(operator, probe):
    episode(probe)
    typed = {"subject": f"probe:{probe.pk}", "length": "4h", "reason": "moving"}
    answer = operator.post(reverse("silence-new"), {**typed, "act": "preview"})
    assert "It hides 1 open alerts now" in answer.content.decode()
    assert not Silence.objects.exists()
    nothing = {"label": "team=nobody", "length": "4h", "reason": "moving"}
    answer = operator.post(reverse("silence-new"), nothing)
    assert "It matches nothing at the moment" in answer.content.decode()
    assert not Silence.objects.exists()
    operator.post(reverse("silence-new"), {**nothing, "sure": "yes"})
    made = Silence.objects.get()
    operator.post(reverse("silence-end", args=[made.pk]))
    made.refresh_from_db()
    assert made.ends_at <= now()


def test_a_silence_without_a_reason_or_a_matcher_is_refused(operator):
    assert operator.post(reverse("silence-new"), {"length": "4h", "family": "latency"}).status_code == 422
    answer = operator.post(reverse("silence-new"), {"length": "4h", "reason": "x", "sure": "yes"})
    assert not Silence.objects.exists()
    assert answer.status_code in {200, 422}


def test_what_fires_stands_in_the_needs_attention_list_until_somebody_takes_care(operator, probe):
    from frontend.alerting.listing import alerts_attention

    found = episode(probe)
    [item] = alerts_attention(now())
    assert item.sentence.startswith("chat: P99 over its limit: 9 of 60")
    operator.post(reverse("alert-act", args=[found.pk]), {"act": "acknowledge"})
    assert alerts_attention(now()) == []
