"""The words of idleness."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Use(models.TextChoices):
    """What a card did over a window. Unknown is neither idle nor busy."""

    WORKING = "working", _("Working")
    STANDBY = "standby", _("Standing by")
    PARKED = "parked", _("Loaded, nothing to do")
    IDLE = "idle", _("Idle")
    UNKNOWN = "unknown", _("Cannot tell")


class Ground(models.TextChoices):
    """What a judgement stands on, in one sentence."""

    KERNELS = "kernels", _("Kernels ran.")
    MEDIA = "media", _("Its video engines worked.")
    POWER = "power", _("It drew more power than a card that waits.")
    REQUESTS = "requests", _("Its engine had requests.")
    HOST = "host", _("The machine’s processors prepare work for it.")
    QUIET = "quiet", _("No kernel, no video, no request, and the power of a card that waits.")
    NO_READINGS = "no_readings", _("Readings are missing.")
    HIDDEN = "hidden", _("The driver hides what it does (MIG or a shared card), and no engine tells.")
    CONTRADICTION = (
        "contradiction",
        _(
            "Utilisation says busy and power says waiting: a stuck collective looks like this, and so does a reading that trails."
        ),
    )
    UNREADABLE = "unreadable", _("The card or its driver is faulty.")
