"""Messages for the notifiers, and a teller that says what somebody hostile would want it to say."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from monitoring.notifiers.compose import compose
from monitoring.notifiers.message import Context, Part
from monitoring.notifiers.told import Told, register_teller

AT = datetime(2026, 3, 10, 14, 2, 31, tzinfo=UTC)
HOSTILE = 'qwen\r\nBcc: x@evil.example @all <!channel> <at user_id="all"></at> [click](http://evil.example) <b>'


def tell(facts, language):
    """Put a sample into words; `name` is whatever the test says."""
    name = facts.get("name", "llama")
    return Told(
        subject=f"{name} P99 {facts.get('p99', '1.84 s')} > 1.00 s",
        first_line=facts.get("line", f"{name} is slow since 2026-03-10T14:02:31+00:00"),
        rows=tuple((f"label {number}", str(value)) for number, value in enumerate(facts.get("rows", ("60 samples",)))),
        links=(("Open the alert", "/alerts/4711/"), ("Edit the rule", "/rules/3/")),
    )


register_teller("episode", tell)


def part(kind="opening", seq=1, topic="episode:4711", severity="critical", opening=None, **facts):
    """One topic's share."""
    return Part(
        topic=topic, seq=seq, kind=kind, severity=severity, facts=facts, created_at=AT, subject_kind="endpoint",
        subject_id=7, opening_facts=opening, opening_severity="critical" if opening is not None else "",
    )  # fmt: skip


def message(*parts, **context):
    """A composed message."""
    given = {
        "panel_url": "https://panel.example", "domain": "abcd2345.panel.example", "language": "en",
        "zone": ZoneInfo("Asia/Shanghai"), "at": AT, "channel_name": "ops", "recipient": "ada@example.com",
    }  # fmt: skip
    return compose(list(parts) or [part()], Context(**{**given, **context}))
