"""The words of reports."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ReportState(models.TextChoices):
    """How far a diagnosis has come."""

    RUNNING = "running", _("Measuring")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")


class ReportCause(models.TextChoices):
    """Who asked for it."""

    PERSON = "person", _("Asked for")
    OBJECTIVE = "objective", _("A missed objective")


class ReportFailure(models.TextChoices):
    """Why a diagnosis found nothing; each with a next step in `frontend.diagnosis.words`."""

    NO_PROBER = "no_prober", _("The panel’s prober does not run")
    NO_OUTSIDE = "no_outside", _("No place outside measured")
    NO_HOST = "no_host", _("The engine’s machine did not measure")
    NOT_JUDGED = "not_judged", _("What was measured contradicts itself")
