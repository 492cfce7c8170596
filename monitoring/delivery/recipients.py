"""Who is behind a channel: addresses of a mail channel, or the one room of a chat; each with language and zone."""

from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models.functions import Lower

from monitoring.delivery.enums import ChannelKind
from monitoring.delivery.models import Channel
from panel.accounts.models import User

UTC: Final = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Recipient:
    """One address (empty for a chat), its language and its zone."""

    address: str
    language: str = "en"
    zone: ZoneInfo = UTC


def _zone(*names: str) -> ZoneInfo:
    name = next((name for name in (*names, settings.DISPLAY_TIME_ZONE, "UTC") if name), "UTC")
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a zone that this machine no longer knows
        return UTC


def _language(*codes: str) -> str:
    known = {code for code, _name in settings.LANGUAGES}
    return next((code for code in codes if code in known), settings.LANGUAGE_CODE)


def recipients_of(channel: Channel) -> list[Recipient]:
    """Return who is reached, in a stable order.

    Language and zone: what stands with the address, else those of the person of the panel with that address, else the
    channel's, else the installation's.
    """
    if channel.kind != ChannelKind.MAIL:
        return [Recipient("", _language(channel.language), _zone(channel.time_zone))]
    entries = [entry for entry in channel.settings.get("recipients", []) if entry.get("address")]
    addresses = [entry["address"].lower() for entry in entries]
    by_address = User.objects.annotate(address=Lower("email")).filter(address__in=addresses, is_active=True)
    people = {user.email.lower(): user for user in by_address}
    found = []
    for entry in entries:
        person = people.get(entry["address"].lower())
        language = _language(entry.get("language", ""), person.language if person else "", channel.language)
        zone = _zone(entry.get("time_zone", ""), person.time_zone if person else "", channel.time_zone)
        found.append(Recipient(entry["address"], language, zone))
    return found
