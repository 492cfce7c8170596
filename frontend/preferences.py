"""How pages look to one viewer: theme, zone, language, rail. From their account, else a cookie, else the installation."""

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language_from_request

from panel.accounts.enums import Theme
from panel.accounts.models import User

THEME_COOKIE: Final = "fleetdeck_theme"
ZONE_COOKIE: Final = "fleetdeck_zone"  # written by the browser: its own zone
RAIL_COOKIE: Final = "fleetdeck_rail"
COOKIE_AGE_SECONDS: Final = 365 * 86_400

ZoneSource = Literal["user", "installation", "browser", "none"]


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the middleware found. zone_source says who decided: a browser's zone is replaced when the browser moves."""

    theme: str
    language: str
    zone: ZoneInfo
    zone_source: ZoneSource
    rail: Literal["open", "collapsed"]
    has_shortcuts: bool


@cache
def zone_names() -> tuple[str, ...]:
    """Return the IANA zones that people choose from, sorted."""
    places = sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return (*places, "UTC")


def zone_named(name: str) -> ZoneInfo | None:
    """Return the zone of that IANA name, or None for anything else (a cookie holds what a browser likes)."""
    return ZoneInfo(name) if name in available_timezones() else None


def _zone(request: HttpRequest, user: User | None) -> tuple[ZoneInfo, ZoneSource]:
    candidates: list[tuple[str, ZoneSource]] = [
        (user.time_zone if user else "", "user"),
        (settings.DISPLAY_TIME_ZONE, "installation"),
        (request.COOKIES.get(ZONE_COOKIE, ""), "browser"),
    ]
    for name, source in candidates:
        zone = zone_named(name) if name else None
        if zone is not None:
            return zone, source
    return ZoneInfo("UTC"), "none"


def known_theme(value: str) -> str:
    """Return the theme when there is one of that name, else an empty text."""
    return value if value in Theme.values else ""


def known_language(value: str) -> str:
    """Return the language when the panel speaks it, else an empty text."""
    return value if value in dict(settings.LANGUAGES) else ""


def _language(request: HttpRequest, user: User | None) -> str:
    return known_language(user.language if user else "") or get_language_from_request(request)


def preferences_of(request: HttpRequest) -> Preferences:
    """Return the preferences of whoever sent the request."""
    found = getattr(request, "user", None)  # an error before anybody was looked up has none
    user = found if isinstance(found, User) else None
    theme = user.theme if user else request.COOKIES.get(THEME_COOKIE, Theme.AUTO)
    zone, source = _zone(request, user)
    return Preferences(
        theme=known_theme(theme) or Theme.AUTO,
        language=_language(request, user),
        zone=zone,
        zone_source=source,
        rail="collapsed" if request.COOKIES.get(RAIL_COOKIE) == "collapsed" else "open",
        has_shortcuts=user.has_shortcuts if user else False,
    )


def remember(
    response: HttpResponse, *, theme: str | None = None, language: str | None = None, rail: str | None = None
) -> None:
    """Put choices into cookies, so that the first paint is right even before anybody has logged in."""
    cookies = {THEME_COOKIE: theme, settings.LANGUAGE_COOKIE_NAME: language, RAIL_COOKIE: rail}
    for name, value in cookies.items():
        if value is not None:
            response.set_cookie(
                name,
                value,
                max_age=COOKIE_AGE_SECONDS,
                samesite="Lax",
                secure=settings.IS_HTTPS,
                httponly=name != RAIL_COOKIE,
            )
