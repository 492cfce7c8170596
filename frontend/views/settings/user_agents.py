"""The browser and system that a User-Agent header names, in a few words; only for people's recognition, never for code."""

from typing import Final

from django.utils.translation import gettext as _

# The first that is found wins: Edge and Opera call themselves Chrome too, and everybody is Mozilla and Safari.
BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("HeadlessChrome", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
    ("python", "Python"),
)
SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_words(user_agent: str) -> str:
    """Return e.g. "Firefox on Linux"; "Unknown browser" when the header says nothing known."""
    browser = next((words for mark, words in BROWSERS if mark in user_agent), "")
    system = next((words for mark, words in SYSTEMS if mark in user_agent), "")
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("Unknown browser")
