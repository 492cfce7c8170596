"""Words of messages: severities, what came to pass, how long."""

from django.utils.translation import gettext as _


def severity_word(severity: str) -> str:
    """Return the severity as it leads a subject."""
    words = {"critical": _("Critical"), "warning": _("Warning"), "info": _("Information")}
    return words.get(severity, severity)


def kind_word(kind: str, severity: str) -> str:
    """Return what leads a title: the severity of what begins, the word for what changes or ends."""
    words = {
        "update": _("Changed"),
        "reminder": _("Still open"),
        "resolved": _("Resolved"),
        "flapping": _("Flapping"),
        "recovered": _("Over again"),
        "digest": _("Digest"),
        "test": _("Test"),
    }
    return words.get(kind) or severity_word(severity)


def duration(seconds: float) -> str:
    """Return a duration in its largest sensible unit."""
    if seconds < 120:
        return _("%(number)s s") % {"number": f"{seconds:.0f}"}
    if seconds < 7_200:
        return _("%(number)s min") % {"number": f"{seconds / 60:.0f}"}
    if seconds < 172_800:
        return _("%(number)s h") % {"number": f"{seconds / 3600:.0f}"}
    return _("%(number)s d") % {"number": f"{seconds / 86_400:.0f}"}
