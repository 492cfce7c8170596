"""Channels: made, changed, given new secrets, switched off, removed."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings as django_settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from monitoring.delivery import reasons
from monitoring.delivery.enums import ChannelKind, NoticeStatus
from monitoring.delivery.models import Channel
from monitoring.delivery.sending import secrets_of_channel
from monitoring.delivery.smtp import context_of
from monitoring.notifiers import mail
from monitoring.notifiers.base import SettingsRefused
from monitoring.notifiers.phrases import stored
from monitoring.notifiers.registry import NOTIFIERS, secrets_of, settings_of
from monitoring.notifiers.webhook import new_signing_secret
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict, InvalidInput, NotFound

MOST_CHANNELS: Final = 200
BOTH_SECRETS_SIGN: Final = timedelta(hours=24)
COLUMNS: Final = frozenset(
    {"name", "language", "time_zone", "min_severity", "topics", "quiet_start", "quiet_end", "fallback_id"}
)
LONGEST_SETTING: Final = 20_000
# Who loses a receiver when a channel goes: functions from its id to names of rules and the like, in the reader's language.
_users: Final[list[Callable[[int], list[str]]]] = []


def register_channel_users(names: Callable[[int], list[str]]) -> None:
    """Say which things name a channel as their receiver; done once, when Django is set up."""
    _users.append(names)


def channel_users(channel_id: int) -> list[str]:
    """Return the names of what would lose this receiver."""
    return [name for names in _users for name in names(channel_id)]


def channel_create(
    *, kind: str, actor: Actor, settings: Mapping[str, Any], secrets: Mapping[str, str], **given: Any
) -> tuple[Channel, dict[str, str]]:
    """Make a channel; returns it, and secrets that were made for it and are shown this once. given: of COLUMNS, `name` at least.

    Raises InvalidInput or Conflict.
    """
    if kind not in ChannelKind.values:
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(ChannelKind.values)}, field="kind")
    if Channel.objects.count() >= MOST_CHANNELS:
        raise InvalidInput(_("More channels than that are not kept; remove some first."))
    channel = Channel(kind=kind, created_at=now(), created_by_name=actor.name[:200])
    kept, made = {name: value for name, value in secrets.items() if value}, {}
    if kind == ChannelKind.WEBHOOK and not kept.get("signing_secret"):
        made = {"signing_secret": new_signing_secret()}
    _set(channel, given)
    _set_settings(channel, settings, {**kept, **made})
    _save(channel, actor, "channel.create", None, {"kind": kind, **_shown(channel)})
    return channel, made


def channel_update(
    *, channel_id: int, actor: Actor, settings: Mapping[str, Any] | None = None, **given: Any
) -> Channel:
    """Change a channel; settings: as a whole, without the secrets, which stay. Raises NotFound, InvalidInput or Conflict."""
    with transaction.atomic():
        channel = _locked(channel_id)
        before = _shown(channel)
        _set(channel, given)
        if settings is not None:
            kept = (
                {"previous_until": channel.settings["previous_until"]} if "previous_until" in channel.settings else {}
            )
            _set_settings(channel, {**settings, **kept}, secrets_of_channel(channel))
        _save(channel, actor, "channel.update", before, _shown(channel))
    return channel


def channel_secrets_replace(*, channel_id: int, actor: Actor, secrets: Mapping[str, str]) -> dict[str, str]:
    """Put new secrets in the place of old ones, those that are named; returns what was made and is shown this once.

    A webhook's signing secret that is given empty is made anew; the one before signs as well for BOTH_SECRETS_SIGN. Raises
    NotFound or InvalidInput.
    """
    with transaction.atomic():
        channel = _locked(channel_id)
        kept, made, settings = secrets_of_channel(channel), dict[str, str](), dict(channel.settings)
        given = dict(secrets)
        if channel.kind == ChannelKind.WEBHOOK and "signing_secret" in given:
            if not given["signing_secret"]:
                made = {"signing_secret": new_signing_secret()}
                given |= made
            if kept.get("signing_secret"):
                given["previous_secret"] = kept["signing_secret"]
                settings["previous_until"] = (now() + BOTH_SECRETS_SIGN).isoformat()
        merged = {name: value for name, value in {**kept, **given}.items() if value}
        _set_settings(channel, settings, merged)
        channel.save(update_fields=["settings", "secrets"])
        names = ", ".join(sorted(set(secrets)))
        audit(
            actor=actor,
            action="channel.replace_secret",
            target=channel,
            target_name=channel.name,
            after={"which": names},
        )
    return made


def channel_enable(*, channel_id: int, actor: Actor) -> Channel:
    """Let a channel be told again, from now on. Raises NotFound."""
    with transaction.atomic():
        channel = _locked(channel_id)
        if not channel.is_enabled:
            channel.is_enabled, channel.disabled_reason, channel.failure = True, "", ""
            channel.save(update_fields=["is_enabled", "disabled_reason", "failure"])
            audit(actor=actor, action="channel.enable", target=channel, target_name=channel.name)
    return channel


def channel_disable(*, channel_id: int, actor: Actor) -> Channel:
    """Tell a channel no more; what is queued for it is not sent. Raises NotFound."""
    with transaction.atomic():
        channel = _locked(channel_id)
        if channel.is_enabled:
            channel.is_enabled = False
            channel.save(update_fields=["is_enabled"])
            _withhold(channel, reasons.SWITCHED_OFF)
            audit(actor=actor, action="channel.disable", target=channel, target_name=channel.name)
    return channel


def channel_delete(*, channel_id: int, actor: Actor) -> None:
    """Remove a channel with its secrets; what it was told stays as a record. Raises NotFound."""
    with transaction.atomic():
        channel = _locked(channel_id)
        lost = channel_users(channel.pk)
        _withhold(channel, reasons.REMOVED)
        audit(
            actor=actor, action="channel.delete", target=channel, target_name=channel.name,
            before=_shown(channel), after={"lost_by": lost} if lost else None,
        )  # fmt: skip
        channel.delete()


def recipient_stop(*, channel_id: int, address: str) -> bool:
    """Take an address off a mail channel because its owner asked; returns whether it was on it."""
    with transaction.atomic():
        channel = Channel.objects.select_for_update().filter(pk=channel_id, kind=ChannelKind.MAIL).first()
        if channel is None:
            return False
        entries = channel.settings.get("recipients", [])
        left = [entry for entry in entries if entry.get("address", "").lower() != address.lower()]
        if len(left) == len(entries):
            return False
        channel.settings = {**channel.settings, "recipients": left}
        if not left:
            channel.is_enabled, channel.disabled_reason = (
                False,
                stored(reasons.LAST_LEFT),
            )
        channel.save(update_fields=["settings", "is_enabled", "disabled_reason"])
        channel.notifications.filter(status=NoticeStatus.QUEUED, recipient__iexact=address).update(
            status=NoticeStatus.WITHHELD, reason=stored(reasons.RECIPIENT_LEFT)
        )
        audit(
            actor=Actor(kind="stranger", id=None, name=address[:200]), action="channel.unsubscribe", target=channel,
            target_name=channel.name, after={"address": address},
        )  # fmt: skip
    return True


def _locked(channel_id: int) -> Channel:
    channel = Channel.objects.select_for_update(of=("self",)).filter(pk=channel_id).first()
    if channel is None:
        raise NotFound(_("There is no such channel."))
    return channel


def _withhold(channel: Channel, reason: str) -> None:
    channel.notifications.filter(status=NoticeStatus.QUEUED).update(
        status=NoticeStatus.WITHHELD, reason=stored(reason), claim=None, claimed_until=None
    )


def _shown(channel: Channel) -> dict[str, Any]:
    columns = {name: getattr(channel, name) for name in sorted(COLUMNS)}
    return {
        **columns,
        "settings": {name: value for name, value in channel.settings.items() if name != "ca_certificate"},
    }


def _save(channel: Channel, actor: Actor, action: str, before: dict[str, Any] | None, after: dict[str, Any]) -> None:
    try:
        with transaction.atomic():
            channel.save()
            audit(actor=actor, action=action, target=channel, target_name=channel.name, before=before, after=after)
    except IntegrityError:
        raise Conflict(_("There is a channel of this name."), code="name_taken") from None


def _set_settings(channel: Channel, settings: Mapping[str, Any], secrets: Mapping[str, str]) -> None:
    """Set what its kind needs. Raises InvalidInput."""
    for given, known in ((settings, settings_of(channel.kind)), (secrets, secrets_of(channel.kind))):
        unknown = sorted(set(given) - known)
        if unknown:
            raise InvalidInput(
                _("A channel of this kind has no setting %(names)s.") % {"names": ", ".join(unknown)}, field="settings"
            )
    if len(json.dumps(settings)) > LONGEST_SETTING or len(json.dumps(dict(secrets))) > LONGEST_SETTING:
        raise InvalidInput(_("Those settings are too long."), field="settings")
    try:
        if channel.kind == ChannelKind.MAIL:
            mail.check(settings, secrets)
            context_of(str(settings.get("ca_certificate", "")))
        else:
            NOTIFIERS[channel.kind].check(settings, secrets)
    except SettingsRefused as error:
        raise InvalidInput(error.sentence, field=error.field) from None
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        raise InvalidInput(_("That is no certificate in PEM form."), field="ca_certificate") from None
    channel.settings = dict(settings)
    channel.secrets = json.dumps(dict(secrets))


def _set(channel: Channel, given: Mapping[str, Any]) -> None:
    """Set what every kind has. Raises InvalidInput."""
    unknown = sorted(set(given) - COLUMNS)
    if unknown:
        raise InvalidInput(_("There is no such setting: %(names)s") % {"names": ", ".join(unknown)})
    for name, value in given.items():
        setattr(channel, name, value)
    channel.name = channel.name.strip()
    if not channel.name or any(ord(character) < 32 for character in channel.name):
        raise InvalidInput(_("A channel needs a name, on one line."), field="name")
    if channel.min_severity not in Severity.values:
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(Severity.values)}, field="min_severity")
    if channel.language and channel.language not in dict(django_settings.LANGUAGES):
        raise InvalidInput(_("The panel does not speak this language."), field="language")
    if channel.time_zone:
        try:
            ZoneInfo(channel.time_zone)
        except (KeyError, ValueError, OSError):
            raise InvalidInput(_("There is no such time zone; write it as Asia/Shanghai."), field="time_zone") from None
    if (channel.quiet_start is None) != (channel.quiet_end is None):
        raise InvalidInput(_("Quiet hours have a beginning and an end."), field="quiet_end")
    if not isinstance(channel.topics, list) or any(
        not isinstance(each, str) or len(each) > 32 for each in channel.topics
    ):
        raise InvalidInput(_("Topics are a list of words."), field="topics")
    if channel.fallback_id is not None and (
        channel.fallback_id == channel.pk or not Channel.objects.filter(pk=channel.fallback_id).exists()
    ):
        raise InvalidInput(_("The other channel is one of those there are, and not this one."), field="fallback")
