"""How far a go-live test and each of its places have come."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class RunState(models.TextChoices):
    """How far a test is; what it came to stands beside it."""

    PENDING = "pending", _("Waiting to begin")
    RUNNING = "running", _("Running")
    ENDED = "ended", _("Ended")
    CANCELLED = "cancelled", _("Cancelled")


class PartState(models.TextChoices):
    """How far one place is."""

    PENDING = "pending", _("Waiting to begin")
    RUNNING = "running", _("Running")
    ENDED = "ended", _("Ended")
    LOST = "lost", _("Not heard of any more")
