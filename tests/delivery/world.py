"""A world to deliver in: channels, a teller, a way out that is watched, and a clock that tests move."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from monitoring.delivery import dispatcher
from monitoring.delivery.models import Channel, Notification
from monitoring.delivery.outbox import Announcement, Told, announce, register_teller
from monitoring.delivery.sending import Sent
from monitoring.notifiers.verdict import Verdict

START = datetime(2026, 3, 10, 14, 0, tzinfo=UTC)
URL = "https://robot.example/robot/send?access_token=0123456789abcdef0123456789abcdef"
OK = Verdict("delivered")
LATER = Verdict("retry", "It answered with HTTP 503.", 503)
NEVER = Verdict("refused", "refused for good")


def tell(facts, language):
    """Put an episode into words."""
    name = facts.get("name", "llama")
    ends = {"resolved": "is over", "recovered": "was down 3 min, recovered"}
    return Told(
        subject=f"{name} {facts.get('p99', 'P99 1.84 s > 1.00 s')}",
        first_line=f"{name}: {ends.get(facts['kind'], 'is slow since 2026-03-10T14:02:31+00:00')}",
        rows=(("Limit", "1.00 s"), ("Samples", str(facts.get("n", 60)))),
        links=(("Open", f"/alerts/{name}/"),),
    )


def register():
    """Make the tests' topics known."""
    register_teller("story", tell)


def make_channel(name="ops", kind="dingtalk", **columns):
    """Store a channel that needs no network to be made."""
    import json

    secrets = {"url": URL}
    if kind == "webhook":
        secrets["signing_secret"] = "whsec_" + "A" * 43 + "="
    columns.setdefault("secrets", json.dumps(secrets))
    return Channel.objects.create(name=name, kind=kind, created_at=START, created_by_name="ada", **columns)


def mail_settings(*addresses, **more):
    """Settings of a mail channel."""
    return {
        "host": "127.0.0.1", "port": 25, "transport": "none", "sender": "panel@example.com",
        "recipients": [{"address": each} if isinstance(each, str) else each for each in addresses], **more,
    }  # fmt: skip


def story(number, seq, kind, severity="critical", **more):
    """An announcement of topic story:<number>."""
    return Announcement(topic=f"story:{number}", seq=seq, kind=kind, severity=severity, **more)


@dataclass
class Wire:
    """Where messages go in tests: what it was given, and what it answers."""

    messages: list = field(default_factory=list)
    answer: Verdict = OK
    at: datetime = START

    def send(self, channel, message, *, at):
        """Stand in for the network."""
        self.messages.append((channel.name, message))
        return Sent(self.answer(channel, message) if callable(self.answer) else self.answer, 1.0, "said")

    @property
    def kinds(self):
        """What was told, in order."""
        return [message.kind for _name, message in self.messages]


class World:
    """Moves the clock and empties the outbox."""

    def __init__(self, wire, clock):
        self.wire, self.clock, self.at = wire, clock, START

    def announce(self, announcement):
        """Queue at the present time."""
        return announce(announcement, at=self.at)

    def move(self, **delta):
        """Let time pass without anything being done."""
        self.at += timedelta(**delta)
        self.clock.move_to(self.at, tick=False)

    def dispatch(self):
        """Empty every channel, as a round of the dispatcher does, in this thread."""
        for channel_id in dispatcher.channels_due(at=self.at):
            dispatcher.channel_empty(channel_id, until=float("inf"))

    def run(self, step_seconds=10, **delta):
        """Let time pass, with a round every few seconds."""
        end = self.at + timedelta(**delta)
        while self.at < end:
            self.move(seconds=min(step_seconds, (end - self.at).total_seconds()))
            self.dispatch()


def statuses():
    """Every row: (topic, seq, status)."""
    return [(row.topic, row.seq, row.status) for row in Notification.objects.order_by("pk")]
