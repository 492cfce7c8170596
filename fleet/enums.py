"""States and kinds of the fleet; the words of docs/architecture.md."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ServerState(models.TextChoices):
    """Whether a machine reports and takes part. Says nothing about billing."""

    PENDING = "pending", _("Pending")
    JOINING = "joining", _("Joining")
    READY = "ready", _("Ready")
    DEGRADED = "degraded", _("Degraded")
    NOT_REPORTING = "not_reporting", _("Not reporting")
    UNREACHABLE = "unreachable", _("Unreachable")
    DRAINING = "draining", _("Draining")
    MAINTENANCE = "maintenance", _("Maintenance")
    RETIRED = "retired", _("Retired")


class GpuHealth(models.TextChoices):
    """The worst of a server's GPUs."""

    HEALTHY = "healthy", _("Healthy")
    WARNING = "warning", _("Warning")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Unknown")


class GpuState(models.TextChoices):
    """What the last report said of a card."""

    OK = "ok", _("OK")
    DEGRADED = "degraded", _("Degraded")
    LOST = "lost", _("Lost")
    MISSING = "missing", _("Missing")
    UNKNOWN = "unknown", _("Unknown")


class DriverState(models.TextChoices):
    """What NVML answers on a server; the same words as fleet.agent.wire.DRIVER_STATES."""

    UNKNOWN = "unknown", _("Unknown")
    OK = "ok", _("OK")
    NO_GPU = "no_gpu", _("No GPU")
    NO_LIBRARY = "no_library", _("No NVIDIA driver library")
    NOT_LOADED = "not_loaded", _("Driver not loaded")
    VERSION_MISMATCH = "version_mismatch", _("Driver version mismatch")
    NO_PERMISSION = "no_permission", _("No permission")
    NOT_ANSWERING = "not_answering", _("Driver not answering")
    ERROR = "error", _("Driver error")
