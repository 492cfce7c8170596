"""States and kinds of the fleet; the words of docs/architecture.md."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


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


class AccountHealth(models.TextChoices):
    """Whether the panel can ask a provider about an account."""

    NEW = "new", _("Not asked yet")
    OK = "ok", _("OK")
    FAILING = "failing", _("Failing")
    REFUSED = "refused", _("Key refused")
    PAUSED = "paused", _("Paused")


class LeaseOrigin(models.TextChoices):
    """How a lease came to be known."""

    ORDERED = "ordered", _("Ordered here")
    FOUND = "found", _("Found at the provider")
    TYPED = "typed", _("Typed in")


class Wanted(models.TextChoices):
    """What people want a leased machine to be."""

    RUNNING = "running", _("Running")
    STOPPED = "stopped", _("Stopped")
    ENDED = "ended", _("Ended")


class LeaseState(models.TextChoices):
    """Where a billed machine is in its life. Billing is assumed until the provider confirms that it has ended."""

    REQUESTED = "requested", _("Requested")
    PROVISIONING = "provisioning", _("Provisioning")
    BOOTING = "booting", _("Booting")
    ACTIVE = "active", _("Active")
    STOPPING = "stopping", _("Stopping")
    STOPPED = "stopped", _("Stopped")
    TERMINATING = "terminating", _("Terminating")
    TERMINATED = "terminated", _("Terminated")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
    PREEMPTED = "preempted", _("Preempted")
    TERMINATION_UNCONFIRMED = "termination_unconfirmed", _("Termination unconfirmed, still billing")
    LOST = "lost", _("Lost")
    UNKNOWN = "unknown", _("Unknown")


class PriceComponent(models.TextChoices):
    """What a part of a price is for."""

    COMPUTE = "compute", _("Machine")
    STOPPED = "stopped", _("Machine while stopped")
    DISK = "disk", _("Disk")
    ADDRESS = "address", _("Public IP")
    TRAFFIC = "traffic", _("Traffic")
    SETUP = "setup", _("Setup fee")
    OTHER = "other", _("Other")


class PriceUnit(models.TextChoices):
    """The time that a price is for."""

    HOUR = "hour", _("per hour")
    DAY = "day", _("per day")
    WEEK = "week", _("per week")
    MONTH = "month", _("per month")
    YEAR = "year", _("per year")
    ONCE = "once", _("once")


class TimeStep(models.IntegerChoices):
    """In which steps the time of a run is billed, in seconds."""

    SECOND = 1, _("Each second")
    MINUTE = 60, _("Whole minutes")
    HOUR = 3600, _("Whole hours")


class BilledMode(models.TextChoices):
    """How a machine is billed for a while."""

    FULL = "full", _("In full")
    STOPPED = "stopped", _("While stopped")


class DriftKind(models.TextChoices):
    """How panel and provider differ."""

    MISSING_AT_PROVIDER = "missing_at_provider", _("Missing at the provider")
    UNKNOWN_AT_PROVIDER = "unknown_at_provider", _("Not known to the panel")
    SPEC_DIFFERS = "spec_differs", _("Not what was ordered")
    PRICE_DIFFERS = "price_differs", _("Price differs")


class DriftResolution(models.TextChoices):
    """How a difference went away."""

    ADOPTED = "adopted", _("Adopted")
    ENDED = "ended", _("Ended")
    ACCEPTED = "accepted", _("Accepted")
    GONE = "gone", _("Gone by itself")


class OperationKind(models.TextChoices):
    """What was asked of a provider."""

    ORDER = "order", _("Order")
    START = "start", _("Start")
    STOP = "stop", pgettext_lazy("machine", "Stop")
    REBOOT = "reboot", _("Reboot")
    TERMINATE = "terminate", _("End")
    SNAPSHOT = "snapshot", _("Snapshot")


class OperationState(models.TextChoices):
    """How far a long call has come."""

    PENDING = "pending", _("Waiting")
    RUNNING = "running", _("In progress")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
    CANCELLED = "cancelled", _("Cancelled")


class JobKind(models.TextChoices):
    """What an agent can be asked to do once."""

    ACCEPTANCE = "acceptance", _("Acceptance check")
    DIAGNOSE = "diagnose", _("Diagnosis, on the engine’s machine")
    PROBE_ROUND = "probe_round", _("Diagnosis, from outside")
    LOAD = "load", _("Load of a go-live test")


class JobState(models.TextChoices):
    """How far a one-shot command for an agent has come."""

    PENDING = "pending", _("Waiting for the agent")
    CLAIMED = "claimed", _("Taken by the agent")
    RUNNING = "running", _("Running")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
    CANCELLED = "cancelled", _("Cancelled")
    EXPIRED = "expired", _("Not done in time")
