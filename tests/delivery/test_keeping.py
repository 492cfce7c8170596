"""What was told is kept for 90 days, and longer while its end is still owed."""

from datetime import timedelta

from monitoring.delivery.keeping import notifications_forget
from monitoring.delivery.models import Notification, NotificationAttempt
from tests.delivery.world import make_channel, story


def test_what_ended_long_ago_goes_and_what_is_still_open_stays(world):
    make_channel()
    world.announce(story(1, 1, "opening"))
    world.announce(story(2, 1, "opening"))
    world.dispatch()
    world.announce(story(1, 2, "resolved"))
    world.dispatch()
    assert notifications_forget(at=world.at + timedelta(days=89)) == 0
    assert notifications_forget(at=world.at + timedelta(days=91)) == 2
    assert list(Notification.objects.values_list("topic", flat=True)) == ["story:2"]
    assert NotificationAttempt.objects.count() == 1
    world.move(days=100)
    world.announce(story(2, 2, "resolved"))
    world.dispatch()
    assert world.wire.kinds[-1] == "resolved"
