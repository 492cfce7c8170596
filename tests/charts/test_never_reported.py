"""Machines that never reported, on the pages: neither called idle nor without a GPU, and named as what they are."""

import pytest

from fleet.models import Lease, Server
from panel.core.clock import now
from tests.charts.fleet_data import machine, working
from tests.charts.reading import text_of
from tests.fleet.factories import joined

pytestmark = pytest.mark.django_db


def test_a_machine_that_never_reported_is_not_said_to_have_no_gpu(viewer):
    agent, _token = joined("rack-1")
    ordered = Server.objects.create(name="box", state="pending", state_changed_at=now(), created_at=now())
    gone = Server.objects.create(name="old", state="retired", state_changed_at=now(), created_at=now())
    Lease.objects.create(
        server=ordered, name="fleetdeck-1", origin="ordered", state="active", billing="hourly", landlord="x",
        state_changed_at=now(), requested_at=now(), spec={"gpu_model": "H100 SXM 80GB", "gpu_count": 1},
    )  # fmt: skip
    for address in ("/", "/fleet/"):
        text = text_of(viewer.get(address))
        assert "no GPU" not in text
        assert "no report yet; 1 × H100 SXM 80GB expected" in text
    for pk, words in (
        (agent.server_id, "No report yet"),
        (ordered.pk, "1 × H100 SXM 80GB expected"),
        (gone.pk, "never"),
    ):
        for part in ("", "?part=status"):
            text = text_of(viewer.get(f"/servers/{pk}/{part}"))
            assert words in text
            assert "No GPU here" not in text


def test_a_machine_that_reports_no_card_has_no_gpu(viewer):
    made = machine(cards=0)
    assert "No GPU here" in text_of(viewer.get(f"/servers/{made.agent.server_id}/"))
    assert "no GPU" in text_of(viewer.get("/fleet/"))


def test_the_tile_and_the_fleet_say_who_never_reported_and_who_is_silent_in_the_same_words(viewer):
    working("rack-1")
    assert "all report" in text_of(viewer.get("/"))
    Server.objects.create(name="box", state="pending", state_changed_at=now(), created_at=now())
    working("rack-2")
    Server.objects.filter(name="rack-2").update(state="degraded")
    for address in ("/", "/fleet/"):
        text = text_of(viewer.get(address))
        assert "box has never reported" in text
        assert "rack-2 is degraded" in text
        assert "all report" not in text
        assert "Every server reports" not in text
    Server.objects.filter(name="rack-1").update(state="not_reporting")
    assert "rack-1 does not report" in text_of(viewer.get("/fleet/"))


def test_many_silent_servers_are_counted_after_the_first_two(viewer):
    for number in range(5):
        Server.objects.create(name=f"box-{number}", state="pending", state_changed_at=now(), created_at=now())
    assert "box-0, box-1 and 3 more have never reported" in text_of(viewer.get("/"))
