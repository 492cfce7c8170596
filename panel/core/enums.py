"""Choices that several apps share."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Severity(models.TextChoices):
    """How much an event matters."""

    INFO = "info", _("Information")
    WARNING = "warning", _("Warning")
    CRITICAL = "critical", _("Critical")
