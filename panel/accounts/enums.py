"""Choices of the accounts."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What a person may do; the table role → capability is in panel/accounts/capabilities.py."""

    VIEWER = "viewer", _("Viewer")
    OPERATOR = "operator", _("Operator")
    ADMIN = "admin", _("Admin")


class Theme(models.TextChoices):
    """Colour scheme of the pages."""

    AUTO = "auto", _("Automatic")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")
