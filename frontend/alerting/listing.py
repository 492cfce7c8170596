"""Rows of the pages of alerts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend.alerting.words import KINDS, TONES, condition_words, entry_sentence, family_word, mute_word
from frontend.attention import Attention
from monitoring.alerts.definitions import Definition
from monitoring.alerts.models import Episode, Rule
from monitoring.alerts.rules import base_of
from monitoring.alerts.selectors import deliveries, firing_now, rule_firings, rule_list
from monitoring.alerts.telling import leading_rule, what_now
from monitoring.alerts.words import duration, rule_title, sentence
from monitoring.delivery.models import Notification
from panel.core.enums import Severity

LISTED: Final = 20
_PAGES: Final = {"endpoint": "endpoint", "gpu": "gpu", "server": "server", "probe": "probe", "place": "server"}


def subject_href(kind: str, subject_id: int) -> str:
    """Return the page of a subject; empty when it has none."""
    name = _PAGES.get(kind)
    if name is None or not subject_id:
        return ""
    try:
        return reverse(name, args=[subject_id])
    except NoReverseMatch:
        return ""


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """One alert as lists show it. told: how far telling people has come."""

    episode: Episode
    title: str
    sentence: str
    tone: str
    href: str
    kind: str
    family: str
    mute: str
    lasted: str
    told: str
    is_undelivered: bool
    is_acknowledged: bool


def names_of_rules(episodes: Sequence[Episode]) -> dict[str, str]:
    """Return the names that people gave to rules. One query."""
    keys = {key for episode in episodes for key in episode.rules}
    return dict(Rule.objects.filter(key__in=keys, is_builtin=False).values_list("key", "name"))


def episode_rows(episodes: Sequence[Episode], *, at: datetime) -> list[EpisodeRow]:
    """Return rows. Two queries."""
    names, told = names_of_rules(episodes), deliveries(episodes)
    return [episode_row(episode, names, told.get(episode.pk, []), at=at) for episode in episodes]


def episode_row(episode: Episode, names: dict[str, str], told: Sequence[Notification], *, at: datetime) -> EpisodeRow:
    """Return one row."""
    leading = leading_rule(list(episode.rules))
    is_firing = episode.resolved_at is None
    undelivered = sum(row.status == "dead" for row in told)
    ended = episode.resolved_at or at
    return EpisodeRow(
        episode=episode,
        title=rule_title(leading, names.get(leading, "")),
        sentence=sentence(leading, episode.evidence.get(leading) or {}),
        tone=TONES[episode.severity] if is_firing else "ok",
        href=subject_href(episode.subject_kind, episode.subject_id),
        kind=str(KINDS.get(episode.subject_kind, episode.subject_kind)),
        family=family_word(episode.family),
        mute=mute_word(episode.muted_by) if is_firing else "",
        lasted=duration((ended - episode.opened_at).total_seconds()),
        told=_told(told, undelivered),
        is_undelivered=bool(undelivered),
        is_acknowledged=bool(episode.acknowledged_until and episode.acknowledged_until > at),
    )


def _told(told: Sequence[Notification], undelivered: int) -> str:
    if not told:
        return _("Nobody was told")
    delivered = sum(row.status == "delivered" for row in told)
    if undelivered:
        return ngettext("%(count)d could not be delivered", "%(count)d could not be delivered", undelivered) % {
            "count": undelivered
        }
    return _("%(delivered)d of %(all)d delivered") % {"delivered": delivered, "all": len(told)}


def timeline(episode: Episode) -> list[dict[str, Any]]:
    """Return the lines of an alert's timeline, the newest first."""
    rows = episode.entries.order_by("-at", "-pk")
    return [
        {"at": row.at, "said": entry_sentence(row.kind, row.data), "text": row.text, "actor": row.actor_name}
        for row in rows
    ]


def evidence_lines(episode: Episode, names: dict[str, str]) -> list[tuple[str, str]]:
    """Return what each rule saw, and what else was there at the time."""
    found = []
    for key, figures in episode.evidence.items():
        if isinstance(figures, dict) and (said := sentence(key, figures)):
            found.append((rule_title(key, names.get(key, "")), said))
    for line in episode.evidence.get("lines") or []:
        said = sentence(line["rule"], line.get("figures") or {})
        found.append((_("At the same time"), f"{line['subject']}: {said or rule_title(line['rule'])}"))
    return found


def next_step(episode: Episode) -> str:
    """Return one thing to do."""
    return what_now(list(episode.rules))


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule as the list shows it."""

    rule: Rule
    title: str
    family: str
    condition: str
    severity: str
    tone: str
    for_words: str
    no_data: str
    fires: int
    last_at: datetime | None
    differences: int


def rule_row(rule: Rule, firings: dict[str, tuple[int, datetime | None]]) -> RuleRow:
    """Return one row."""
    definition = base_of(rule)
    fires, last_at = firings.get(rule.key, (0, None))
    return RuleRow(
        rule=rule,
        title=rule_title(rule.key, rule.name),
        family=family_word(definition.family),
        condition=condition_words(definition),
        severity=str(Severity(definition.severity).label),
        tone=TONES[definition.severity],
        for_words=duration(definition.holding.for_seconds) if definition.holding.for_seconds else _("at once"),
        no_data=_no_data(definition),
        fires=fires,
        last_at=last_at,
        differences=getattr(rule, "differences", 0),
    )


def _no_data(definition: Definition) -> str:
    return _("fires") if definition.holding.is_absence_breach else _("stays as it is")


def rule_rows(*, at: datetime) -> list[RuleRow]:
    """Return every rule. Two queries."""
    firings = rule_firings(at=at)
    return [rule_row(rule, firings) for rule in rule_list()]


def alerts_attention(now: datetime) -> list[Attention]:
    """Return what fires and nobody has acknowledged, for the Overview. Two queries."""
    rows = [each for each in firing_now() if not (each.acknowledged_until and each.acknowledged_until > now)][:LISTED]
    names = names_of_rules(rows)
    found = []
    for episode in rows:
        row = episode_row(episode, names, [], at=now)
        said = f"{row.title}: {row.sentence}" if row.sentence else row.title
        found.append(
            Attention(
                f"alert.{episode.pk}", Severity(episode.severity), f"{episode.subject_name}: {said}", next_step(episode),
                _("Open alert"), reverse("alert", args=[episode.pk]), episode.opened_at,
            )
        )  # fmt: skip
    return found
