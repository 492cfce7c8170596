"""Words of alerts: kinds of rules, families, what an episode went through."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class RuleKind(models.TextChoices):
    """How a rule judges."""

    COUNT = "count", _("Count of probes")
    DOWN = "down", _("Places agree")
    SILENT = "silent", _("Silence of probes")
    STATE = "state", _("State")
    THRESHOLD = "threshold", _("Threshold")


class Family(models.TextChoices):
    """What makes one incident of a subject together. A rule of people's own is a family by itself: `rule:<id>`."""

    AVAILABILITY = "availability", _("Availability")
    LATENCY = "latency", _("Latency")
    P95 = "p95", _("Latency P95")
    DATA = "data", _("Data")
    AGENT = "agent", _("Agent")
    PLACE = "place", _("Place that probes")
    GPU = "gpu", _("GPU fault")
    HEAT = "heat", _("Throttling and temperature")
    LOAD = "load", _("Load")
    MEMORY = "memory", _("GPU memory")
    CERTIFICATE = "certificate", _("Certificate")


class EntryKind(models.TextChoices):
    """One line of an episode's timeline."""

    FIRED = "fired", _("Fired")
    REFIRED = "refired", _("Fired again")
    CEASED = "ceased", _("Ceased")
    SEVERITY = "severity", _("Severity changed")
    TOLD = "told", _("Told")
    MUTED = "muted", _("Muted")
    UNMUTED = "unmuted", _("No longer muted")
    FROZEN = "frozen", _("No data")
    THAWED = "thawed", _("Data again")
    ACKNOWLEDGED = "acknowledged", _("Acknowledged")
    UNACKNOWLEDGED = "unacknowledged", _("Acknowledgement taken back")
    NOTE = "note", _("Note")
    CLOSED = "closed", _("Closed")


class Mute(models.TextChoices):
    """Why nobody is told."""

    NONE = "", _("Nothing")
    SILENCE = "silence", _("Silence")
    MAINTENANCE = "maintenance", _("Maintenance")
    INHIBITED = "inhibited", _("Follows from another incident")
