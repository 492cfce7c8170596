"""States and kinds of endpoints, replicas, rollouts and gateways; the words of the domain."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class Phase(models.TextChoices):
    """How an endpoint is for those who call it: derived, the first that holds (see endpoints.lifecycle)."""

    DELETING = "deleting", _("Deleting")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
    UNAVAILABLE = "unavailable", _("Unavailable")
    DEGRADED = "degraded", _("Degraded")
    ROLLING_OUT = "rolling_out", _("Rolling out")
    SCALING = "scaling", _("Scaling")
    SCALED_TO_ZERO = "scaled_to_zero", _("Scaled to zero")
    PAUSED = "paused", _("Paused")
    HEALTHY = "healthy", _("Healthy")


class DesiredSource(models.TextChoices):
    """Who set the number of replicas last."""

    PERSON = "person", _("Person")
    SCHEDULE = "schedule", _("Schedule")
    AUTOSCALER = "autoscaler", _("Autoscaler")


class RevisionState(models.TextChoices):
    """What is known of a revision: `good` once it served, `failed` when its last rollout was given up."""

    NEW = "new", _("New")
    GOOD = "good", _("Good")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")


class RolloutState(models.TextChoices):
    """How a change of revision goes."""

    RUNNING = "running", _("Running")
    PAUSED = "paused", _("Paused")
    SUCCEEDED = "succeeded", _("Succeeded")
    RETURNED = "returned", _("Returned to the last good revision")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
    CANCELLED = "cancelled", _("Cancelled")


class Wanted(models.TextChoices):
    """What the panel wants of a replica."""

    RUN = "run", _("Run")
    DRAIN = "drain", _("Drain")
    STOP = "stop", _("Stop")


class ReplicaState(models.TextChoices):
    """Where a replica is on its way. Only `ready` ones take requests."""

    PENDING = "pending", _("Pending")
    PULLING = "pulling", _("Pulling the image")
    STARTING = "starting", _("Starting")
    READY = "ready", _("Ready")
    NOT_READY = "not_ready", _("Not ready")
    DRAINING = "draining", _("Draining")
    STOPPED = "stopped", _("Stopped")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
    LOST = "lost", _("Lost")


class ReplicaHealth(models.TextChoices):
    """How an engine is while it runs."""

    UNKNOWN = "", _("Not known")
    STARTING = "starting", _("Starting")
    OK = "ok", _("OK")
    DEGRADED = "degraded", _("Degraded")
    SATURATED = "saturated", _("Saturated")
    STALLED = "stalled", _("Stalled")
    ASLEEP = "asleep", _("Asleep")
    DOWN = "down", _("Down")


class RuntimeChoice(models.TextChoices):
    """How engines run on a server."""

    AUTO = "auto", _("Containers where there is an engine, else processes")
    CONTAINER = "container", _("Containers")
    PROCESS = "process", _("Plain processes")


class GatewayState(models.TextChoices):
    """What the agent last said of its gateway."""

    PENDING = "pending", _("Pending")
    STARTING = "starting", _("Starting")
    SERVING = "serving", _("Serving")
    FAILED = "failed", pgettext_lazy("outcome", "Failed")
