"""What the accounts throw away, and what they keep."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session

from panel.accounts.models import ApiToken, AuditEntry, LoginSession
from panel.accounts.services.housekeeping import accounts_clean
from panel.core.clock import now
from panel.schedule import BEAT_SCHEDULE
from tests.accounts.people import person, session_client, token_of

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


def test_beat_asks_for_it():
    assert "panel.accounts.tasks.clean" in {entry["task"] for entry in BEAT_SCHEDULE.values()}
