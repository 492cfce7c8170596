"""What the accounts throw away, and what they keep."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache

from panel.accounts.models import ApiToken, AuditEntry, LoginSession, TwoFactor
from panel.accounts.services.challenges import challenge_keep, challenge_take
from panel.accounts.services.housekeeping import accounts_clean
from panel.core.clock import now
from panel.core.valkey import valkey
from panel.schedule import BEAT_SCHEDULE
from tests.accounts.people import PASSWORD, person, session_client, token_of

pytestmark = pytest.mark.django_db


def test_sessions_that_ran_out_go_and_living_ones_stay():
    vera = person("vera")
    for client in (session_client(vera), session_client(vera)):
        client.get("/api/v1/users/me/")
    dead = Session.objects.order_by("pk").first()
    Session.objects.filter(pk=dead.pk).update(expire_date=now() - timedelta(seconds=1))
    accounts_clean()
    assert Session.objects.count() == LoginSession.objects.count() == 1
    assert not LoginSession.objects.filter(session_key=dead.pk).exists()


def test_tokens_go_ninety_days_after_their_end():
    vera = person("vera")
    for days, revoked in ((-91, False), (-89, False), (30, False), (30, True)):
        token_of(vera, expires_in=timedelta(days=days), revoked=revoked)
    accounts_clean()
    assert ApiToken.objects.count() == 3
    ApiToken.objects.filter(revoked_at__isnull=False).update(revoked_at=now() - timedelta(days=91))
    accounts_clean()
    assert ApiToken.objects.count() == 2
    assert not AuditEntry.objects.exists()


def test_challenges_of_passkeys_go_by_themselves_whether_used_or_not():
    cache.clear()
    challenge_keep(purpose="log-in", whose="a session", challenge=b"left")
    challenge_keep(purpose="register", whose="7", challenge=b"used")
    keys = list(valkey().scan_iter("*passkey-challenge*"))
    assert len(keys) == 2
    assert all(0 < valkey().ttl(key) <= 300 for key in keys)
    assert challenge_take(purpose="register", whose="7") == b"used"
    assert challenge_take(purpose="register", whose="7") is None
    assert challenge_take(purpose="register", whose="a session") is None
    assert len(list(valkey().scan_iter("*passkey-challenge*"))) == 1


def test_a_log_in_that_stopped_at_the_second_step_leaves_a_session_that_goes(client):
    vera = person("vera")
    TwoFactor.objects.create(user=vera, secret="x", created_at=now(), confirmed_at=now())
    client.post("/login/", {"username": "vera", "password": PASSWORD})
    assert Session.objects.count() == 1
    Session.objects.update(expire_date=now() - timedelta(seconds=1))
    accounts_clean()
    assert not Session.objects.exists()


def test_beat_asks_for_it():
    assert "panel.accounts.tasks.clean" in {entry["task"] for entry in BEAT_SCHEDULE.values()}
