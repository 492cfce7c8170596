"""The Events page: one stream of what happened and what people did."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from frontend.csv_export import safe_cell
from frontend.events.cursor import Cursor
from frontend.events.filters import read_filter
from frontend.events.rows import changes_of, row_of
from frontend.events.stream import PAGE_ROWS, cursor_of, new_rows, stream_all, stream_page
from panel.accounts.models import AuditEntry
from panel.core.models import Event
from tests.fleet.factories import Machine, joined, xid
from tests.frontend.html import Page

FIRST, LAST = (datetime.fromisoformat(f"{year}-01-01") for year in (1971, 2200))
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def event(minutes=0, kind="server.joined", severity="info", subject=("server", 1, "rack-1"), server_id=1, **data):
    subject_kind, subject_id, name = subject
    return Event.objects.create(
        at=NOON + timedelta(minutes=minutes),
        kind=kind,
        severity=severity,
        subject_kind=subject_kind,
        subject_id=subject_id,
        subject_name=name,
        server_id=server_id,
        data=data,
    )


def entry(minutes=0, action="server.update", actor="ada", target=("server", 1, "rack-1"), before=None, after=None):
    target_kind, target_id, name = target
    return AuditEntry.objects.create(
        at=NOON + timedelta(minutes=minutes),
        actor_kind="user",
        actor_id=1,
        actor_name=actor,
        action=action,
        target_kind=target_kind,
        target_id=target_id,
        target_name=name,
        before=before,
        after=after,
    )


def wanted(query="", sees_audit=True):
    return read_filter(QueryDict(query), sees_audit=sees_audit)


def shown(query="", **options):
    return [(type(row).__name__, row.pk) for row in stream_page(wanted(query, **options)).entries]


def names(*rows):
    return [(type(row).__name__, row.pk) for row in rows]


@pytest.mark.django_db
def test_both_sources_are_one_stream_newest_first():
    first, second, third = event(0), entry(1), event(2)
    assert shown() == names(third, second, first)


@pytest.mark.django_db
def test_pages_join_without_a_gap_or_a_repeat_even_within_one_instant():
    rows = [(event if index % 3 else entry)(index // 40) for index in range(PAGE_ROWS * 2 + 15)]
    everything, before = [], None
    while True:
        page = stream_page(wanted(), before=before)
        everything += page.entries
        if page.older is None:
            break
        before = page.older
    assert names(*everything) == names(*sorted(rows, key=cursor_of, reverse=True))
    newer = stream_page(wanted(), after=cursor_of(everything[PAGE_ROWS]))
    assert names(*newer.entries) == names(*everything[:PAGE_ROWS])
    assert newer.newer is None


@pytest.mark.django_db
def test_an_operation_is_found_by_who_asked_for_it_and_names_them():
    done = event(0, "operation.ended", subject=("lease", 3, "trainer"), state="succeeded", asked_by="olga")
    done.data |= {"kind": "stop"}
    done.save()
    event(1, "operation.ended", subject=("lease", 4, "box"), state="succeeded", asked_by="ada")
    event(2, "lease.state_changed", subject=("lease", 3, "trainer"))
    assert shown("actor=OLG") == names(done)
    assert row_of(done, sees_users=False).actor == "olga"


@pytest.mark.django_db
@pytest.mark.parametrize("family", ["lease.", "operation.", "account.", "drift."])
def test_what_is_rented_can_be_picked_out(family, ada):
    assert f'<option value="{family}" selected>' in ada.get(f"/events/?kind={family}").content.decode()


@given(
    at=st.datetimes(min_value=FIRST, max_value=LAST),
    rank=st.integers(0, 1),
    pk=st.integers(0, 10**17),
)
def test_a_cursor_survives_the_address(at, rank, pk):
    cursor = Cursor(at=at.replace(tzinfo=UTC), rank=rank, id=pk)
    assert Cursor.parse(str(cursor)) == cursor


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "999999999999999999.0.1", "-1.0.1", "1.0.1; drop"])
def test_a_cursor_that_is_none_is_no_cursor(text):
    assert Cursor.parse(text) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("kind=gpu.", ["fault"]),
        ("kind=gpu.xid", ["fault"]),
        ("severity=critical", ["fault"]),
        ("actor=ad", ["renamed"]),
        ("source=audit", ["renamed"]),
        ("source=event", ["other", "fault"]),
        ("subject=server:1", ["renamed", "fault"]),
        ("subject=gpu:7", ["fault"]),
        ("q=rack-2", ["other"]),
        ("from=2026-03-10T12:01", ["other", "renamed"]),
        ("to=2026-03-10T12:01", ["fault"]),
        ("kind=%27%3B--&severity=loud&subject=x", ["other", "renamed", "fault"]),
    ],
)
def test_filters_are_read_from_the_address(query, expected):
    rows = {
        "fault": event(0, "gpu.xid", "critical", ("gpu", 7, "rack-1 #0"), code=79),
        "renamed": entry(1),
        "other": event(2, subject=("server", 2, "rack-2"), server_id=2),
    }
    assert shown(query) == names(*(rows[name] for name in expected))


@pytest.mark.django_db
def test_a_period_counts_back_from_now(time_machine):
    time_machine.move_to(NOON + timedelta(minutes=90))
    event(0)
    late = event(60)
    assert shown("period=1h") == names(late)


@pytest.mark.django_db
def test_who_may_not_see_the_audit_trail_sees_events_only():
    happened, _done = event(0), entry(1)
    assert shown(sees_audit=False) == names(happened)
    assert shown("source=audit", sees_audit=False) == []


@pytest.mark.django_db
def test_new_rows_are_counted_from_the_newest_shown():
    first = event(0)
    entry(1)
    event(2)
    assert new_rows(wanted(), after=cursor_of(first)) == 2
    assert new_rows(wanted("source=audit"), after=cursor_of(first)) == 1


@pytest.mark.django_db
def test_the_whole_stream_is_given_up_to_a_bound():
    rows = [event(index) for index in range(7)]
    assert names(*stream_all(wanted(), limit=3)) == names(*rows[:-4:-1])


def test_only_what_differs_is_a_change():
    changes = changes_of({"name": "a", "region": "x", "labels": {"k": 1}}, {"name": "b", "region": "x", "gone": None})
    assert [(change.name, change.before, change.after) for change in changes] == [
        ("gone", None, "null"),
        ("labels", '{"k": 1}', None),
        ("name", "a", "b"),
    ]


def test_the_page_tells_sentences_and_shows_the_difference(ada):
    entry(before={"name": "old"}, after={"name": "new"})
    event(1, "gpu.xid", "critical", ("gpu", 7, "rack-1 #0"), code=79)
    page = ada.get("/events/").content.decode()
    assert "<del>old</del>" in page
    assert "<ins>new</ins>" in page
    assert "XID 79: The card fell off the PCI bus" in page
    assert 'aria-label="Critical"' in page


def test_names_and_reasons_that_agents_send_are_text(ada):
    event(
        0,
        "server.state_changed",
        subject=("server", 1, "<img src=x onerror=alert(1)>"),
        **{"from": "ready", "to": "<b>", "reason": "<i>x"},
    )
    page = ada.get("/events/").content.decode()
    assert "<img" not in page
    assert "<i>x" not in page
    assert Page(page).faults() == []


def test_nothing_yet_and_nothing_that_matches_are_two_texts(browser):
    client = browser("viewer")
    assert "Nothing has happened yet" in client.get("/events/").content.decode()
    event()
    assert "Nothing matches these filters" in client.get("/events/?q=nowhere").content.decode()


def test_a_viewer_is_told_that_the_audit_trail_is_elsewhere(browser):
    entry(actor="ada-the-admin")
    page = browser("viewer").get("/events/").content.decode()
    assert "from the role “Operator” on" in page
    assert "ada-the-admin" not in page


def test_the_line_above_the_table_offers_new_rows(ada):
    first = event(0)
    event(1)
    answer = ada.get(f"/events/new/?q=rack&since={cursor_of(first)}").content.decode()
    assert "1 new row" in answer
    assert 'href="/events/?q=rack"' in answer


def test_the_csv_has_every_row_with_its_facts_and_no_formula(ada):
    event(0, subject=("server", 1, '=HYPERLINK("http://x")'))
    entry(1, before={"name": "old"}, after={"name": "new"})
    answer = ada.get("/events/csv/?kind=server.")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert "attachment" in answer["Content-Disposition"]
    assert [row["kind"] for row in rows] == ["server.update", "server.joined"]
    assert rows[0]["details"] == "name: old → new"
    assert rows[1]["object"] == '\'=HYPERLINK("http://x")'


@pytest.mark.parametrize(
    ("value", "cell"),
    [("=1", "'=1"), ("+x", "'+x"), ("@a", "'@a"), ("-5.5", "-5.5"), ("\t=1", "'\t=1"), (None, ""), (7, "7")],
)
def test_a_cell_never_begins_a_formula(value, cell):
    assert safe_cell(value) == cell


def test_real_events_of_a_machine_get_sentences(ada):
    agent, _token = joined("rack-1")
    machine = Machine(agent, cards=2)
    machine.send()
    machine.send(faults=[xid(79, agent.joined_at)])
    page = ada.get("/events/").content.decode()
    assert "A machine joined from 127.0.0.1" in page
    assert "2 GPUs found: NVIDIA H200" in page
    assert "Joining → Ready" in page
