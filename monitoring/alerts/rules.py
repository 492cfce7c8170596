"""Rules as they are in force: definitions, settings and what differs for a subject, resolved once a round."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from monitoring.alerts.builtin import BY_KEY
from monitoring.alerts.definitions import Definition, laid_over
from monitoring.alerts.enums import RuleKind
from monitoring.alerts.models import Rule, RuleOverride
from monitoring.alerts.subjects import Key, Subject, Subjects
from panel.core.enums import Severity


def base_of(rule: Rule) -> Definition:
    """Return a rule's definition with its own settings. A rule of people's own is a threshold rule and a family by itself."""
    builtin = BY_KEY.get(rule.key)
    base = builtin or Definition(rule.key, RuleKind(rule.kind), f"rule:{rule.pk}", Severity.WARNING)
    return laid_over(base, rule.settings, rule.severity)


@dataclass(slots=True)
class RuleInForce:
    """One rule. special: of subjects for which something differs; None: it is off for them."""

    rule: Rule
    base: Definition
    special: dict[Key, Definition | None] = field(default_factory=dict)

    def of(self, key: Key) -> Definition | None:
        """Return what it is for a subject; None: it does not watch it."""
        return self.special.get(key, self.base)


def rules_in_force(subjects: Subjects) -> list[RuleInForce]:
    """Return the rules that watch anything, with what differs resolved to subjects. Two queries, more with labels."""
    overrides: defaultdict[int, list[RuleOverride]] = defaultdict(list)
    for override in RuleOverride.objects.order_by("pk"):
        overrides[override.rule_id].append(override)
    found = []
    for rule in Rule.objects.order_by("pk"):
        if not rule.is_enabled and not any(each.is_enabled for each in overrides[rule.pk]):
            continue
        in_force = RuleInForce(rule, base_of(rule))
        _resolve(in_force, overrides[rule.pk], subjects)
        found.append(in_force)
    return found


def kinds_of(definition: Definition) -> tuple[str, ...]:
    """Return the kinds of subjects that a rule is about."""
    if definition.kind == RuleKind.THRESHOLD:
        return (definition.subject_kind,)
    if definition.kind in {RuleKind.COUNT, RuleKind.DOWN, RuleKind.SILENT} or definition.key == "cert":
        return ("endpoint", "probe")
    return {"vantage_bad": ("place",), "agent_down": ("server",)}.get(definition.key, ("gpu", "server"))


def _resolve(in_force: RuleInForce, overrides: list[RuleOverride], subjects: Subjects) -> None:
    rule = in_force.rule
    if not rule.scope and rule.is_enabled and not overrides:
        return
    by_label = [each for each in overrides if each.label_name]
    by_subject = {(each.subject_kind, each.subject_id): each for each in overrides if not each.label_name}
    if rule.scope or by_label or not rule.is_enabled:
        for kind in kinds_of(in_force.base):
            for subject in subjects.all(kind).values():
                _place(in_force, subject, by_label, by_subject.get((subject.kind, subject.id)))
        return
    for (kind, subject_id), override in by_subject.items():
        if subject_id is not None:
            in_force.special[kind, subject_id] = _overridden(in_force.base, rule.is_enabled, [override])


def _place(in_force: RuleInForce, subject: Subject, by_label: list[RuleOverride], own: RuleOverride | None) -> None:
    matching = [each for each in by_label if subject.labels.get(each.label_name) == each.label_value]
    matching += [own] if own is not None else []
    is_on = in_force.rule.is_enabled and is_in_scope(in_force.rule.scope, subject)
    definition = _overridden(in_force.base, is_on, matching)
    if definition != in_force.base:
        in_force.special[subject.kind, subject.id] = definition


def is_in_scope(scope: Mapping[str, str], subject: Subject) -> bool:
    """Say whether a subject has all labels that a rule asks for."""
    return all(subject.labels.get(name) == value for name, value in scope.items())


def _overridden(base: Definition, is_on: bool, overrides: list[RuleOverride]) -> Definition | None:  # noqa: FBT001
    for override in overrides:
        is_on = is_on if override.is_enabled is None else override.is_enabled
        base = laid_over(base, override.settings, override.severity)
    return base if is_on else None
