"""The dispatcher: empties the outbox, each channel in a thread of its own, so that a slow server delays its own alone."""

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime
from typing import TYPE_CHECKING, Final

import structlog
from django.db import connections

from monitoring.delivery.heartbeats import heartbeat
from monitoring.delivery.leasing import Lease, channels_due, lease_next
from monitoring.delivery.rendering import message_of
from monitoring.delivery.selectors import trouble_tell
from monitoring.delivery.sending import Sent, send
from monitoring.delivery.settling import settle
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.verdict import Verdict
from panel.core.clock import now

if TYPE_CHECKING:
    from monitoring.notifiers.message import Message

NAME: Final = "dispatcher"
MOST_CHANNELS_AT_ONCE: Final = 8
LOOK_AGAIN_SECONDS: Final = 1.0
ROUND_SECONDS: Final = 25.0  # no message is begun later in a round than this
log = structlog.get_logger(__name__)


def deliver(lease: Lease) -> Sent:
    """Render, send, settle one lease; returns what came of it. The network is used outside any transaction."""
    message: Message | None = None
    try:
        message = message_of(lease, at=now())
        sent = send(lease.channel, message, at=now())
    except Exception as error:  # whatever is wrong with one message, it ends in words and delays no other
        log.exception("delivery.failed", notification=lease.leader.pk)
        sentence = _("The panel could not make or send it: %(why)s") % {"why": type(error).__name__}
        sent = Sent(Verdict("retry", sentence, error_code=type(error).__name__), 0.0, "")
    settle(lease, message, sent.verdict, at=now(), latency_ms=sent.latency_ms, conversation=sent.conversation)
    return sent


def channel_empty(channel_id: int, *, until: float) -> int:
    """Send what is due on one channel, one after the other, beginning none after `until` (monotonic); returns how many."""
    count = 0
    while time.monotonic() < until:
        lease = lease_next(channel_id, at=now())
        if lease is None:
            break
        deliver(lease)
        count += 1
    return count


def _in_thread(channel_id: int, until: float) -> int:
    try:
        return channel_empty(channel_id, until=until)
    except Exception:
        log.exception(
            "delivery.channel_failed", channel=channel_id
        )  # the others go on; the lease runs out and is taken again
        return 0
    finally:
        connections.close_all()  # this thread's own


def dispatch() -> int:
    """Send what is due on every channel; returns how many messages were sent. Ends within a minute; any number may run.

    While one channel is slow, the others are looked at again every second.
    """
    began, at = time.monotonic(), now()
    until = began + ROUND_SECONDS
    running: dict[int, Future[int]] = {}
    rests_until: dict[
        int, float
    ] = {}  # channels that had nothing to send after all: windows full, or another process has it
    count = 0
    with ThreadPoolExecutor(MOST_CHANNELS_AT_ONCE, thread_name_prefix="delivery") as threads:
        while True:
            if time.monotonic() < until:
                for channel_id in channels_due(at=now()):
                    if channel_id not in running and rests_until.get(channel_id, began) <= time.monotonic():
                        running[channel_id] = threads.submit(_in_thread, channel_id, until)
            if not running:
                break
            wait(running.values(), timeout=LOOK_AGAIN_SECONDS, return_when=FIRST_COMPLETED)
            for channel_id in [channel_id for channel_id, job in running.items() if job.done()]:
                sent = running.pop(channel_id).result()
                count += sent
                if not sent:
                    rests_until[channel_id] = time.monotonic() + LOOK_AGAIN_SECONDS
    _tell(at, count)
    return count


def _tell(at: datetime, count: int) -> None:
    trouble_tell(at=now())
    heartbeat(NAME, at=now(), facts={"sent": count, "seconds": round((now() - at).total_seconds(), 3)})
