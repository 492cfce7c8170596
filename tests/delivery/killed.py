"""Run by test_kill.py: dispatchers that kill themselves (SIGKILL) at one step each, and others that take over.

Prints one JSON object: step → the signal that ended the first process, and the exit status of the second.
"""

import json
import os
import signal
import sys
import traceback
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings.testing")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import transaction  # noqa: E402

from monitoring.delivery import dispatcher, leasing, settling  # noqa: E402
from monitoring.delivery.models import Channel, Notification  # noqa: E402
from monitoring.delivery.outbox import Announcement, announce  # noqa: E402
from panel.core import clock  # noqa: E402
from tests.delivery.world import register  # noqa: E402

STEPS = (
    "announced, not committed", "announced", "leased, not committed", "leased", "rendered", "sent", "settled, not committed",
    "settled",
)  # fmt: skip
AFTER_LEASE = timedelta(seconds=61)
BETWEEN_STEPS = timedelta(minutes=10)  # else they would be a storm, and come as a digest


def moment(number):
    """Return when a step happens, and have the dispatcher believe it."""
    at = clock.now() + number * BETWEEN_STEPS
    dispatcher.now = lambda: at
    return at


def die(*_, **__):
    """End as a machine does that loses power."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying_after(module, name):
    """Let a function do its work, and the process end before anything else."""
    real = getattr(module, name)

    def wrapped(*arguments, **options):
        result = real(*arguments, **options)
        die()
        return result

    setattr(module, name, wrapped)


def story(number, seq, kind):
    """An announcement whose name the mails carry."""
    return Announcement(f"story:{number}", seq, kind, "critical", facts={"name": f"step-{number}"})


def first(number, step):
    """Announce and deliver an opening, and die at the step."""
    at = moment(number)
    if step == "announced, not committed":
        with transaction.atomic():
            announce(story(number, 1, "opening"), at=at)
            die()
    announce(story(number, 1, "opening"), at=at)
    if step == "announced":
        die()
    if step == "leased, not committed":
        dying_after(leasing, "_claimed")
    elif step == "leased":
        dying_after(dispatcher, "lease_next")
    elif step == "rendered":
        dying_after(dispatcher, "message_of")
    elif step == "sent":
        dying_after(dispatcher, "send")
    elif step == "settled, not committed":
        dying_after(settling, "_delivered")
    elif step == "settled":
        dying_after(dispatcher, "settle")
    for channel in Channel.objects.all():
        dispatcher.channel_empty(channel.pk, until=float("inf"))


def second(number, step):
    """A minute later the evaluator that repeats itself, and another dispatcher."""
    at = moment(number) + AFTER_LEASE
    dispatcher.now = lambda: at
    announce(story(number, 1, "opening"), at=at)
    dispatcher.dispatch()
    announce(story(number, 2, "resolved"), at=at)
    dispatcher.dispatch()
    assert not Notification.objects.filter(topic=f"story:{number}").exclude(status="delivered").exists()


def run(function, *arguments):
    """Run it in a process of its own; returns its wait status."""
    pid = os.fork()
    if pid == 0:
        try:
            register()
            settings.EGRESS_ALLOW = ["127.0.0.0/8"]
            function(*arguments)
        except BaseException:  # noqa: BLE001 (it is told and the process ends)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def main():
    """Go through every step."""
    found = {}
    for number, step in enumerate(STEPS):
        status = run(first, number, step)
        found[step] = [
            os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            os.waitstatus_to_exitcode(run(second, number, step)),
        ]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
