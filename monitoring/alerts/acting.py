"""What people do: rules changed, differences for some subjects, episodes acknowledged and noted, silences made and ended."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from monitoring.alerts.enums import EntryKind, RuleKind
from monitoring.alerts.episodes import TOPIC
from monitoring.alerts.facts import episode_live
from monitoring.alerts.models import Episode, EpisodeEntry, Rule, RuleOverride, Silence
from monitoring.alerts.settings import settings_checked, threshold_checked
from monitoring.alerts.silencing import window_read
from monitoring.alerts.subjects import subject_kinds, subjects_load
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.enums import Severity
from panel.core.errors import Conflict, InvalidInput, NotFound
from panel.core.live import publish_later

LONGEST_ACKNOWLEDGEMENT: Final = timedelta(days=7)
LONGEST_SILENCE: Final = timedelta(days=90)
MOST_RULES: Final = 500
MOST_MATCHERS: Final = 10
_SEVERITIES: Final = ("", *Severity.values)


def _row(model: Any, pk: int, sentence: str) -> Any:
    found = model.objects.select_for_update().filter(pk=pk).first()
    if found is None:
        raise NotFound(sentence)
    return found


def _words(given: Mapping[str, Any], field: str = "scope") -> dict[str, str]:
    if not isinstance(given, Mapping) or len(given) > MOST_MATCHERS:
        raise InvalidInput(_("Those are names with one value each, ten at most."), field=field)
    found = {str(name).strip()[:64]: str(value).strip()[:200] for name, value in given.items()}
    if any(not name or not value for name, value in found.items()):
        raise InvalidInput(_("Each name needs a value."), field=field)
    return found


def rule_create(
    *, actor: Actor, name: str, settings: Mapping[str, Any], severity: str = "warning", scope: Any = None
) -> Rule:
    """Make a threshold rule. Raises InvalidInput."""
    if not name.strip():
        raise InvalidInput(_("A rule needs a name."), field="name")
    if Rule.objects.count() >= MOST_RULES:
        raise InvalidInput(_("More rules than that are not kept; remove some first."))
    checked = settings_checked(RuleKind.THRESHOLD, settings, is_builtin=False)
    threshold_checked(checked)
    if severity not in Severity.values:
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(Severity.values)}, field="severity")
    with transaction.atomic():
        rule = Rule.objects.create(
            key=f"own-{now():%Y%m%d%H%M%S%f}", name=name.strip()[:100], kind=RuleKind.THRESHOLD, severity=severity,
            settings=checked, scope=_words(scope or {}), created_at=now(), created_by_name=actor.name[:200],
        )  # fmt: skip
        audit(actor=actor, action="alert_rule.create", target=rule, target_name=str(rule), after=_shown(rule))
    return rule


def _shown(rule: Rule) -> dict[str, Any]:
    return {
        "name": rule.name, "severity": rule.severity, "settings": rule.settings, "scope": rule.scope,
        "is_enabled": rule.is_enabled,
    }  # fmt: skip


def rule_update(*, actor: Actor, rule_id: int, **given: Any) -> Rule:
    """Change a rule: name (of one's own), severity, settings, scope, is_enabled; it is judged anew from then on.

    Raises NotFound or InvalidInput.
    """
    with transaction.atomic():
        rule: Rule = _row(Rule, rule_id, _("There is no such rule."))
        before = _shown(rule)
        if "name" in given and not rule.is_builtin:
            if not str(given["name"]).strip():
                raise InvalidInput(_("A rule needs a name."), field="name")
            rule.name = str(given["name"]).strip()[:100]
        if "severity" in given:
            if given["severity"] not in (_SEVERITIES if rule.is_builtin else Severity.values):
                raise InvalidInput(
                    _("It is one of: %(names)s") % {"names": ", ".join(Severity.values)}, field="severity"
                )
            rule.severity = given["severity"]
        if "settings" in given:
            rule.settings = settings_checked(rule.kind, given["settings"], is_builtin=rule.is_builtin)
            if not rule.is_builtin:
                threshold_checked(rule.settings)
        if "scope" in given:
            rule.scope = _words(given["scope"])
        if "is_enabled" in given:
            rule.is_enabled = bool(given["is_enabled"])
        if before != _shown(rule):
            rule.version += 1
            rule.save()
            audit(
                actor=actor, action="alert_rule.update", target=rule, target_name=str(rule), before=before,
                after=_shown(rule),
            )  # fmt: skip
    return rule


def rule_delete(*, actor: Actor, rule_id: int) -> None:
    """Remove a rule of people's own; a built-in one can only be switched off. Raises NotFound or Conflict."""
    with transaction.atomic():
        rule: Rule = _row(Rule, rule_id, _("There is no such rule."))
        if rule.is_builtin:
            raise Conflict(_("Built-in rules are not removed; switch it off instead."))
        audit(actor=actor, action="alert_rule.delete", target=rule, target_name=str(rule), before=_shown(rule))
        rule.delete()


def override_set(
    *,
    actor: Actor,
    rule_id: int,
    subject_kind: str = "",
    subject_id: int | None = None,
    label_name: str = "",
    label_value: str = "",
    settings: Mapping[str, Any] | None = None,
    severity: str = "",
    is_enabled: bool | None = None,
) -> RuleOverride:
    """Say what a rule is for one subject, or for all with a label; saying it again replaces it. Raises NotFound, InvalidInput."""
    if (subject_id is None) == (not label_name):
        raise InvalidInput(_("Name one subject, or a label and its value."), field="subject_id")
    if subject_id is not None and not (subject_kind in subject_kinds() and subjects_load(subject_kind, [subject_id])):
        raise InvalidInput(_("There is no such subject."), field="subject_id")
    if severity not in _SEVERITIES:
        raise InvalidInput(_("It is one of: %(names)s") % {"names": ", ".join(Severity.values)}, field="severity")
    with transaction.atomic():
        rule: Rule = _row(Rule, rule_id, _("There is no such rule."))
        checked = settings_checked(rule.kind, settings or {}, is_builtin=True)
        override, _made = RuleOverride.objects.update_or_create(
            rule=rule,
            subject_kind=subject_kind if subject_id is not None else "",
            subject_id=subject_id,
            label_name=label_name.strip()[:64],
            label_value=label_value.strip()[:200],
            defaults={"settings": checked, "severity": severity, "is_enabled": is_enabled},
            create_defaults={
                "settings": checked, "severity": severity, "is_enabled": is_enabled, "created_at": now(),
                "created_by_name": actor.name[:200],
            },
        )  # fmt: skip
        after = {"for": str(override), "settings": checked, "severity": severity, "is_enabled": is_enabled}
        audit(actor=actor, action="alert_rule.override", target=rule, target_name=str(rule), after=after)
    return override


def override_remove(*, actor: Actor, rule_id: int, override_id: int) -> None:
    """Let a rule be what it is for everybody again. Raises NotFound."""
    with transaction.atomic():
        override = RuleOverride.objects.select_related("rule").filter(pk=override_id, rule_id=rule_id).first()
        if override is None:
            raise NotFound(_("There is no such difference."))
        audit(
            actor=actor, action="alert_rule.override_remove", target=override.rule, target_name=str(override.rule),
            before={"for": str(override), "settings": override.settings},
        )  # fmt: skip
        override.delete()


def _entry(episode: Episode, kind: EntryKind, actor: Actor, *, text: str = "", **data: Any) -> None:
    EpisodeEntry.objects.create(
        episode=episode, at=now(), kind=kind, text=text[:2000], actor_name=actor.name[:200], data=data
    )
    publish_later(TOPIC, {"episodes": {str(episode.pk): episode_live(episode)}})


def episode_acknowledge(*, actor: Actor, episode_id: int, until: datetime | None = None, text: str = "") -> Episode:
    """Say that somebody takes care: no reminders until then (a day when None, seven at most). Raises NotFound, InvalidInput."""
    at = now()
    ends = until or at + timedelta(days=1)
    if not at < ends <= at + LONGEST_ACKNOWLEDGEMENT:
        raise InvalidInput(_("An acknowledgement lasts from now to at most seven days."), field="until")
    with transaction.atomic():
        episode: Episode = _row(Episode, episode_id, _("There is no such alert."))
        if episode.closed_at is not None:
            raise Conflict(_("This alert is over."))
        episode.acknowledged_at, episode.acknowledged_until = at, ends
        episode.acknowledged_by_name = actor.name[:200]
        episode.save(update_fields=["acknowledged_at", "acknowledged_until", "acknowledged_by_name"])
        _entry(episode, EntryKind.ACKNOWLEDGED, actor, text=text, until=ends.isoformat())
        audit(
            actor=actor, action="alert.acknowledge", target=episode, target_name=str(episode),
            after={"until": ends.isoformat()}, reason=text[:500],
        )  # fmt: skip
    return episode


def episode_unacknowledge(*, actor: Actor, episode_id: int) -> Episode:
    """Take an acknowledgement back. Raises NotFound."""
    with transaction.atomic():
        episode: Episode = _row(Episode, episode_id, _("There is no such alert."))
        episode.acknowledged_at = episode.acknowledged_until = None
        episode.acknowledged_by_name = ""
        episode.save(update_fields=["acknowledged_at", "acknowledged_until", "acknowledged_by_name"])
        _entry(episode, EntryKind.UNACKNOWLEDGED, actor)
        audit(actor=actor, action="alert.unacknowledge", target=episode, target_name=str(episode))
    return episode


def episode_note(*, actor: Actor, episode_id: int, text: str) -> Episode:
    """Write a line into an episode's timeline. Raises NotFound or InvalidInput."""
    if not text.strip():
        raise InvalidInput(_("A note needs words."), field="text")
    with transaction.atomic():
        episode: Episode = _row(Episode, episode_id, _("There is no such alert."))
        _entry(episode, EntryKind.NOTE, actor, text=text.strip())
        audit(actor=actor, action="alert.note", target=episode, target_name=str(episode))
    return episode


def silence_create(
    *,
    actor: Actor,
    matchers: Mapping[str, Any],
    reason: str,
    ends_at: datetime,
    starts_at: datetime | None = None,
    zone: str = "UTC",
    window: Mapping[str, Any] | None = None,
    is_maintenance: bool = False,
) -> Silence:
    """Tell nobody of what matches for a time. Raises InvalidInput."""
    at = now()
    found = silence_checked(
        matchers=matchers, reason=reason, starts_at=starts_at or at, ends_at=ends_at, zone=zone, window=window or {}
    )
    with transaction.atomic():
        silence = Silence.objects.create(
            **found, is_maintenance=is_maintenance, created_at=at, created_by_name=actor.name[:200]
        )
        audit(
            actor=actor, action="silence.create", target=silence, target_name=str(silence)[:200], reason=found["reason"],
            after={"matchers": found["matchers"], "ends_at": found["ends_at"].isoformat(), "window": found["window"]},
        )  # fmt: skip
    return silence


def silence_checked(
    *,
    matchers: Mapping[str, Any],
    reason: str,
    starts_at: datetime,
    ends_at: datetime,
    zone: str,
    window: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a silence's columns. Raises InvalidInput that says what to change."""
    words = _words(matchers, "matchers")
    if not words:
        raise InvalidInput(_("A silence without a matcher would hide everything; name one at least."), field="matchers")
    if not reason.strip():
        raise InvalidInput(_("Say why: whoever looks at it next month must know."), field="reason")
    if not starts_at < ends_at or ends_at <= now():
        raise InvalidInput(_("It ends after it began, and in the future."), field="ends_at")
    if ends_at - starts_at > LONGEST_SILENCE:
        raise InvalidInput(
            _("A silence lasts 90 days at most; what is never wanted is switched off as a rule."), field="ends_at"
        )
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        raise InvalidInput(_("There is no such time zone: %(zone)s") % {"zone": zone}, field="zone") from None
    try:
        window_read(window)
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(
            _("A weekly window has `days` (Monday is 0), `from` and `to`, such as 22:00."), field="window"
        ) from None
    return {
        "matchers": words, "reason": reason.strip()[:500], "starts_at": starts_at, "ends_at": ends_at, "zone": zone,
        "window": dict(window),
    }  # fmt: skip


def silence_end(*, actor: Actor, silence_id: int, ends_at: datetime | None = None) -> Silence:
    """End a silence now, or move its end. Raises NotFound, Conflict or InvalidInput."""
    at = now()
    with transaction.atomic():
        silence: Silence = _row(Silence, silence_id, _("There is no such silence."))
        if silence.ends_at <= at:
            raise Conflict(_("This silence is over already."))
        ends = ends_at or max(at, silence.starts_at)
        if ends_at is not None and not at < ends_at <= silence.starts_at + LONGEST_SILENCE:
            raise InvalidInput(_("It ends in the future, and 90 days after its beginning at most."), field="ends_at")
        before = silence.ends_at
        silence.ends_at = ends
        silence.ended_by_name = actor.name[:200]
        try:
            silence.save(update_fields=["ends_at", "ended_by_name"])
        except IntegrityError:
            raise InvalidInput(_("It ends after it began."), field="ends_at") from None
        audit(
            actor=actor, action="silence.end", target=silence, target_name=str(silence)[:200],
            before={"ends_at": before.isoformat()}, after={"ends_at": ends.isoformat()},
        )  # fmt: skip
    return silence
