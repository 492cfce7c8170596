"""What people are told: openings and ends alternate, whatever happens; re-opens, flapping, caps, reminders, silences."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring.alerts.incident import DEFAULT, LATENCY, Kind, Policy, Seen, incident_open, incident_step
from panel.core.enums import Severity

CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING
MINUTE, HOUR = 60.0, 3600.0
FIRES = (Kind.OPENING, Kind.FLAPPING)


def lived(looks, *, every=MINUTE, policy=DEFAULT):
    """Run looks (Seen, or how many minutes of it) through incidents of one key; return [(minute, kind)]."""
    incident, told, now, sent = None, [], 0.0, ()
    for seen, minutes in looks:
        for _ in range(int(minutes * MINUTE / every)):
            if incident is None and seen.severity is not None and not seen.is_frozen:
                incident = incident_open(seen.severity, now=now, sent=sent)
            if incident is not None:
                incident, kinds = incident_step(incident, seen, now=now, policy=policy)
                told += [(now / MINUTE, kind) for kind in kinds]
                if incident.is_over:
                    sent, incident = incident.sent, None
            now += every
    return told


def kinds(told):
    return [kind for _, kind in told]


def bad(severity=CRITICAL, **more):
    return Seen(severity, **more)


GOOD = Seen(None)


def test_an_incident_is_opened_and_resolved_once():
    assert lived([(bad(), 10), (GOOD, 200)]) == [(0, Kind.OPENING), (10, Kind.RESOLVED)]


def test_firing_again_within_two_hours_is_the_same_incident_and_silent():
    assert kinds(lived([(bad(), 10), (GOOD, 60), (bad(), 30), (GOOD, 200)])) == [Kind.OPENING, Kind.RESOLVED]


def test_firing_again_after_two_hours_is_another_incident():
    assert kinds(lived([(bad(), 10), (GOOD, 121), (bad(), 10), (GOOD, 1)])) == [Kind.OPENING, Kind.RESOLVED] * 2


def test_a_silent_reopen_that_lasts_is_told_after_all():
    told = lived([(bad(), 10), (GOOD, 60), (bad(), 300), (GOOD, 1)])
    assert told == [(0, Kind.OPENING), (10, Kind.RESOLVED), (310, Kind.OPENING), (370, Kind.RESOLVED)]


def test_what_comes_back_worse_is_never_silent():
    told = lived([(bad(WARNING), 10), (GOOD, 30), (bad(CRITICAL), 10), (GOOD, 1)])
    assert kinds(told) == [Kind.OPENING, Kind.RESOLVED, Kind.OPENING, Kind.RESOLVED]


def test_of_latency_the_fast_rule_after_the_slow_one_is_no_news_within_the_silence():
    told = lived([(bad(WARNING), 10), (GOOD, 30), (bad(CRITICAL), 10), (GOOD, 1)], policy=LATENCY)
    assert kinds(told) == [Kind.OPENING, Kind.RESOLVED]


def test_the_third_reopen_within_a_day_is_said_once_then_nothing_until_it_stood_still():
    on_and_off = [(bad(), 5), (GOOD, 30)] * 8
    told = lived([*on_and_off, (GOOD, 300)])
    assert kinds(told) == [Kind.OPENING, Kind.RESOLVED, Kind.FLAPPING, Kind.RESOLVED]
    assert told[2][0] == 105  # the fourth time that it fires
    assert told[3][0] == 250 + 240  # four hours after it last ceased


def test_flapping_that_ends_in_firing_for_good_goes_on_as_an_incident_that_people_know():
    told = lived([*[(bad(), 5), (GOOD, 30)] * 3, (bad(), 600), (GOOD, 1)])
    assert kinds(told)[:3] == [Kind.OPENING, Kind.RESOLVED, Kind.FLAPPING]
    assert kinds(told)[-1] == Kind.RESOLVED
    assert Kind.OPENING not in kinds(told)[3:]


def test_a_higher_severity_is_told_and_a_lower_one_is_not():
    told = lived([(bad(WARNING), 10), (bad(CRITICAL), 10), (bad(WARNING), 10), (bad(CRITICAL), 10), (GOOD, 1)])
    assert told == [(0, Kind.OPENING), (10, Kind.UPDATE), (40, Kind.RESOLVED)]


def test_reminders_come_ever_later_and_none_after_an_acknowledgement():
    told = lived([(bad(), 24 * 60)], policy=replace(DEFAULT, cap=100))
    assert [at for at, kind in told if kind == Kind.REMINDER] == [240, 600, 1140]  # 4 h, 6 h, 9 h
    assert kinds(lived([(bad(is_acknowledged=True), 24 * 60)])) == [Kind.OPENING]


def test_no_more_than_four_messages_of_one_key_in_a_day_but_the_end_that_is_owed():
    told = lived([(bad(), 5), (GOOD, 125)] * 9)
    day = [kind for at, kind in told if at < 24 * 60]
    assert day == [Kind.OPENING, Kind.RESOLVED] * 2
    policy = Policy(cap=3)
    assert kinds(lived([(bad(), 5), (GOOD, 125), (bad(), 5), (GOOD, 5)], policy=policy)) == [
        Kind.OPENING, Kind.RESOLVED, Kind.OPENING, Kind.RESOLVED,
    ]  # fmt: skip


def test_a_silence_hides_the_opening_and_never_the_end_that_is_owed():
    silent = bad(is_muted=True)
    assert lived([(silent, 30), (Seen(None, is_muted=True), 10)]) == []
    assert kinds(lived([(bad(), 10), (silent, 30), (Seen(None, is_muted=True), 1)])) == [Kind.OPENING, Kind.RESOLVED]


def test_what_still_fires_when_the_silence_ends_is_told_then():
    assert lived([(bad(is_muted=True), 60), (bad(), 5)]) == [(60, Kind.OPENING)]


def test_without_data_an_incident_stays_as_it_is():
    assert kinds(lived([(bad(), 10), (Seen(None, is_frozen=True), 600), (GOOD, 1)])) == [Kind.OPENING, Kind.RESOLVED]


LOOKS = st.builds(
    Seen,
    severity=st.sampled_from([None, None, WARNING, CRITICAL]),
    is_frozen=st.sampled_from([False, False, False, True]),
    is_muted=st.sampled_from([False, False, True]),
    is_acknowledged=st.booleans(),
)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(LOOKS, st.sampled_from([1, 3, 10, 45, 130, 250])), max_size=40),
    st.sampled_from([DEFAULT, LATENCY, Policy(cap=1), Policy(cap=2, flap_reopens=1), Policy(reminders=())]),
)
def test_for_any_sequence_what_is_told_alternates_and_is_owed(looks, policy):
    """No end without a beginning, no two beginnings in a row, nothing while muted but the end that is owed."""
    incident, now, believed, sent = None, 0.0, False, []
    for seen, minutes in looks:
        for minute in (0, minutes - 1):
            at = now + minute * MINUTE
            if incident is None and seen.severity is not None and not seen.is_frozen:
                incident = incident_open(seen.severity, now=at, sent=sent)
            if incident is None:
                continue
            incident, told = incident_step(incident, seen, now=at, policy=policy)
            assert len(told) <= 1
            for kind in told:
                if kind == Kind.RESOLVED:
                    assert believed
                    assert seen.severity is None or not incident.is_firing
                else:
                    assert not seen.is_muted
                    assert believed == (kind not in FIRES)
                    assert len([each for each in sent if each > at - 24 * HOUR]) < policy.cap
                believed = kind != Kind.RESOLVED
                sent.append(at)
            assert incident.is_told == believed
            if seen.is_frozen:
                assert Kind.REMINDER not in told
            if incident.is_over:
                assert not believed
                incident = None
        now += minutes * MINUTE
