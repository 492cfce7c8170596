"""Rules, where each stands on each subject, what fires, and what is silenced."""

from django.db import models
from django.db.models import Q

from monitoring.alerts.enums import EntryKind, Mute, RuleKind
from monitoring.alerts.machine import Phase
from panel.core.enums import Severity


class Rule(models.Model):
    """One thing that is watched. Built-in ones have their definition in code (monitoring/alerts/builtin.py), named by `key`.

    severity: empty for the definition's own. settings: what differs from the definition, or all of a rule of people's own; see
    monitoring/alerts/settings.py. scope: matchers of labels ({name: value}) that a subject must have, all subjects when empty.
    version: goes up with every change.
    """

    key = models.CharField(max_length=32, unique=True)
    name = models.CharField(max_length=100, blank=True, default="")
    kind = models.CharField(max_length=16, choices=RuleKind.choices)
    severity = models.CharField(max_length=16, choices=Severity.choices, blank=True, default="")
    settings = models.JSONField(default=dict)
    scope = models.JSONField(default=dict)
    is_builtin = models.BooleanField(default=False)
    is_enabled = models.BooleanField(default=True)
    version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=RuleKind.values), name="rule_kind_known"),
            models.CheckConstraint(condition=Q(severity__in=["", *Severity.values]), name="rule_severity_known"),
        ]

    def __str__(self) -> str:
        return self.name or self.key


class RuleOverride(models.Model):
    """What a rule is for some subjects: one (subject_kind, subject_id), or all with a label. The narrower one wins.

    is_enabled None: as the rule. settings: what differs.
    """

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="overrides")
    subject_kind = models.CharField(max_length=16, blank=True, default="")
    subject_id = models.BigIntegerField(null=True)
    label_name = models.CharField(max_length=64, blank=True, default="")
    label_value = models.CharField(max_length=200, blank=True, default="")
    settings = models.JSONField(default=dict)
    severity = models.CharField(max_length=16, choices=Severity.choices, blank=True, default="")
    is_enabled = models.BooleanField(null=True)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "subject_kind", "subject_id", "label_name", "label_value"],
                name="ruleoverride_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=(Q(subject_id=None) & ~Q(label_name="")) | (Q(subject_id__isnull=False) & Q(label_name="")),
                name="ruleoverride_one_target",
            ),
            models.CheckConstraint(
                condition=Q(severity__in=["", *Severity.values]), name="ruleoverride_severity_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule_id}: {self.label_name or self.subject_kind} {self.label_value or self.subject_id}"


class RuleStanding(models.Model):
    """Where a rule stands on a subject that is not quiet; the row goes when it is.

    state, memory: as monitoring/alerts/packing.py. rule_version: of the rule when it was written; after a change everything
    begins anew.
    """

    rule = models.ForeignKey(Rule, on_delete=models.CASCADE, related_name="standings")
    rule_version = models.PositiveIntegerField()
    subject_kind = models.CharField(max_length=16)
    subject_id = models.BigIntegerField()
    phase = models.CharField(max_length=16, choices=[(each.value, each.value) for each in Phase])
    since = models.DateTimeField()
    state = models.JSONField()
    memory = models.JSONField(default=dict)
    evidence = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule", "subject_kind", "subject_id"], name="rulestanding_once"),
            models.CheckConstraint(
                condition=Q(phase__in=[each.value for each in Phase]), name="rulestanding_phase_known"
            ),
        ]
        indexes = [models.Index(fields=["phase", "since"], name="rulestanding_by_phase")]

    def __str__(self) -> str:
        return f"{self.rule_id} on {self.subject_kind} {self.subject_id}: {self.phase}"


class Episode(models.Model):
    """One incident of a subject and a family of rules: open until it can not be silently opened again (`closed_at`).

    resolved_at: since when it does not fire; None while it does. rules: keys of those that fire, or fired last. host_id: the
    server that the subject hangs on. is_told: the last that people heard was that it fires. muted_by: why nobody is told,
    muted_ref: the silence or episode that does it. incident: as monitoring/alerts/packing.py. evidence: by rule, what it saw.
    seq: of the last announcement. version guards writes of people.
    """

    family = models.CharField(max_length=32)
    subject_kind = models.CharField(max_length=16)
    subject_id = models.BigIntegerField()
    subject_name = models.CharField(max_length=200)
    host_id = models.BigIntegerField(null=True)
    severity = models.CharField(max_length=16, choices=Severity.choices)
    rules = models.JSONField(default=list)
    opened_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    frozen_since = models.DateTimeField(null=True)
    is_told = models.BooleanField(default=False)
    is_flapping = models.BooleanField(default=False)
    muted_by = models.CharField(max_length=16, choices=Mute.choices, blank=True, default="")
    muted_ref = models.BigIntegerField(null=True)
    incident = models.JSONField()
    evidence = models.JSONField(default=dict)
    seq = models.PositiveIntegerField(default=0)
    acknowledged_until = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by_name = models.CharField(max_length=200, blank=True, default="")
    version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["family", "subject_kind", "subject_id"], condition=Q(closed_at=None), name="episode_one_open"
            ),
            models.CheckConstraint(condition=Q(severity__in=Severity.values), name="episode_severity_known"),
            models.CheckConstraint(condition=Q(muted_by__in=Mute.values), name="episode_mute_known"),
            models.CheckConstraint(
                condition=Q(closed_at=None) | Q(resolved_at__isnull=False), name="episode_closed_is_resolved"
            ),
        ]
        indexes = [
            models.Index(fields=["-opened_at", "-id"], name="episode_newest"),
            models.Index(fields=["severity"], condition=Q(resolved_at=None), name="episode_firing"),
            models.Index(fields=["subject_kind", "subject_id", "-opened_at"], name="episode_by_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.family} of {self.subject_name} #{self.pk}"


class EpisodeEntry(models.Model):
    """One line of an episode's timeline: what happened, or what somebody noted."""

    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="entries")
    at = models.DateTimeField()
    kind = models.CharField(max_length=16, choices=EntryKind.choices)
    data = models.JSONField(default=dict)
    text = models.CharField(max_length=2_000, blank=True, default="")
    actor_name = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(kind__in=EntryKind.values), name="episodeentry_kind_known")]
        indexes = [models.Index(fields=["episode", "at"], name="episodeentry_by_time")]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.kind}"


class Silence(models.Model):
    """Of what matches nobody is told from starts_at to ends_at; with `window` only within it.

    matchers: {name: value} that all must hold; names: `rule`, `family`, `severity`, `subject`, `kind`, `server`, or a label.
    window: {} or {"days": [0…6, Monday 0], "from": "22:00", "to": "08:00"} on the clock of `zone` (IANA); over midnight when `to`
    is not later. is_maintenance: what is measured meanwhile counts for no rule either.
    """

    matchers = models.JSONField()
    reason = models.CharField(max_length=500)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    zone = models.CharField(max_length=64, default="UTC")
    window = models.JSONField(default=dict)
    is_maintenance = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    ended_by_name = models.CharField(max_length=200, blank=True, default="")
    suppressed = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gte=models.F("starts_at")), name="silence_forward"),
            models.CheckConstraint(condition=~Q(reason=""), name="silence_has_reason"),
        ]
        indexes = [models.Index(fields=["ends_at"], name="silence_by_end")]

    def __str__(self) -> str:
        return f"silence {self.pk}: {self.reason}"
