"""One round of the evaluator: read, judge, remember, tell, in one transaction of one leader."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any, Final

import structlog
from django.db import connection, transaction

from monitoring.alerts.conditions.reading import NO_DATA, QUIET
from monitoring.alerts.conditions.thresholds import EMPTY, Memory
from monitoring.alerts.enums import Family, RuleKind
from monitoring.alerts.episodes import EpisodeRound, Firing
from monitoring.alerts.history import ProbeHistory
from monitoring.alerts.machine import RESTING, Phase, RuleState, rule_step
from monitoring.alerts.models import RuleStanding
from monitoring.alerts.muting import Silences, facts_of
from monitoring.alerts.outcomes import Outcome
from monitoring.alerts.packing import memory_pack, memory_read, state_pack, state_read
from monitoring.alerts.probe_rules import (
    Interval,
    ProbeRound,
    count_found,
    down_found,
    places_found,
    silence_found,
)  # fmt: skip
from monitoring.alerts.rules import RuleInForce, rules_in_force
from monitoring.alerts.series import NewestValues
from monitoring.alerts.state_rules import Certificates, agents_silent, cards_missing, faults
from monitoring.alerts.subjects import Key, Subjects
from monitoring.alerts.threshold_rules import threshold_outcomes
from monitoring.delivery.models import Heartbeat
from monitoring.probing.models import Probe

# First half of the advisory lock's key: one evaluator at a time, wherever it runs.
_ADVISORY_CLASS: Final = 0x0FD6
LOOK_BACK: Final = 6 * 3600.0
# Probes that come rarely are judged over longer windows.
LONGEST_LOOK_BACK: Final = 60 * 3600.0
HEARTBEAT: Final = "evaluator"
StandingKey = tuple[int, str, int]  # rule, subject kind, subject id
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Round:
    """How a round went."""

    subjects: int = 0
    outcomes: int = 0
    firing: int = 0
    told: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Standing:
    """What was remembered of a rule on a subject, and what will be."""

    row: RuleStanding | None
    state: RuleState = RESTING
    memory: Memory = EMPTY
    evidence: dict[str, Any] = field(default_factory=dict)
    is_touched: bool = False


class Evaluator:
    """Evaluates all rules; keeps between rounds only what would be costly to read again."""

    def __init__(self) -> None:
        self._history = ProbeHistory()
        self._certificates = Certificates()

    def evaluate(self, *, at: datetime) -> Round | None:
        """Run one round; None when another evaluator is at it. All that it finds becomes true in one commit."""
        began = perf_counter()
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", [_ADVISORY_CLASS])
                if not cursor.fetchone()[0]:
                    return None
            found = _OneRound(at, self._history, self._certificates).run()
            found.seconds = perf_counter() - began
            Heartbeat.objects.update_or_create(
                name=HEARTBEAT,
                defaults={"at": at, "facts": {"seconds": round(found.seconds, 3), "firing": found.firing}},
            )
        return found


class _OneRound:
    def __init__(self, at: datetime, history: ProbeHistory, certificates: Certificates) -> None:
        self.at, self.now = at, at.timestamp()
        self.subjects = Subjects()
        self.rules = rules_in_force(self.subjects)
        self.standings = self._standings()
        self.probes = list(Probe.objects.filter(is_enabled=True).order_by("pk").defer("target", "bearer"))
        longest = max((probe.interval_seconds for probe in self.probes), default=30.0)
        look_back = min(max(LOOK_BACK, LOOK_BACK * longest / 60.0), LONGEST_LOOK_BACK)
        self.silences = Silences(at, since=timedelta(seconds=look_back))
        metrics = {probe.metric for probe in self.probes} | {"ttft", "tpot"}
        found = history.read(now=self.now, seconds=look_back, metrics=metrics) if self.probes else {}
        self.certificates = certificates
        self.probing = ProbeRound(found, self.probes, now=self.now, excluded=self._excluded)
        self.episodes = EpisodeRound(at, self.subjects, self.silences)
        self.result = Round()

    def _standings(self) -> dict[StandingKey, Standing]:
        found: dict[StandingKey, Standing] = {}
        versions = {each.rule.pk: each.rule.version for each in self.rules}
        for row in RuleStanding.objects.all():
            key = (row.rule_id, row.subject_kind, row.subject_id)
            if versions.get(row.rule_id) == row.rule_version:
                found[key] = Standing(row, state_read(row.state), memory_read(row.memory), row.evidence)
            else:
                found[key] = Standing(row, evidence=row.evidence)
        return found

    def _excluded(self, key: Key) -> list[Interval]:
        if not self.silences.maintenances:
            return []
        subject = self.subjects.get(key)
        return self.silences.spans(facts_of("", subject, (), "")) if subject is not None else []

    def run(self) -> Round:
        """Judge in the order in which one thing explains another: places, hosts, availability, then the rest."""
        self._judge_places()
        for kind in (RuleKind.STATE, RuleKind.DOWN, RuleKind.SILENT, RuleKind.COUNT, RuleKind.THRESHOLD):
            for in_force in self.rules:
                if in_force.base.kind == kind and in_force.base.key != "vantage_bad":
                    self._judge(in_force)
        firing = self._firing()
        self.result.told = self.episodes.run(firing)
        self._write()
        self.result.firing = len(firing)
        self.result.subjects = len(self.probing.probes)
        return self.result

    def _judge_places(self) -> None:
        in_force = next((each for each in self.rules if each.base.key == "vantage_bad"), None)
        if in_force is None:
            return
        for place, reading, evidence in places_found(self.probing):
            self._look(in_force, ("place", place), Outcome(in_force.base, reading, evidence))
        bad = {
            key[2] for key, standing in self.standings.items()
            if key[0] == in_force.rule.pk and standing.state.phase == Phase.FIRING
        }  # fmt: skip
        self.probing.leave_out(bad)

    def _judge(self, in_force: RuleInForce) -> None:
        known = self._known(in_force)
        kind = in_force.base.kind
        if kind == RuleKind.THRESHOLD:
            self._judge_threshold(in_force, known)
        elif kind == RuleKind.STATE:
            self._judge_state(in_force, known)
        else:
            self._judge_probes(in_force, known)
        for key in known:
            standing = self.standings[in_force.rule.pk, *key]
            if not standing.is_touched:
                # It is watched no more, or the subject is gone: what was there ends with it.
                self._look(in_force, key, Outcome(in_force.base, self._absent_reading(in_force, key)))

    def _absent_reading(self, in_force: RuleInForce, key: Key) -> Any:
        is_watched = in_force.of(key) is not None and self.subjects.get(key) is not None
        return QUIET if not is_watched or in_force.base.kind == RuleKind.STATE else NO_DATA

    def _known(self, in_force: RuleInForce) -> set[Key]:
        return {(key[1], key[2]) for key in self.standings if key[0] == in_force.rule.pk}

    def _judge_state(self, in_force: RuleInForce, _known: set[Key]) -> None:
        sources = {
            "agent_down": agents_silent, "xid": faults, "gpu_missing": cards_missing, "cert": self.certificates.found,
        }  # fmt: skip
        source = sources.get(in_force.base.key)
        for key, reading, evidence in source(self.at) if source is not None else ():
            definition = in_force.of(key)
            if definition is not None:
                self._look(in_force, key, Outcome(definition, reading, evidence))

    def _judge_threshold(self, in_force: RuleInForce, known: set[Key]) -> None:
        memories = {key[1]: self.standings[in_force.rule.pk, *key].memory for key in known}
        threshold = in_force.base.threshold
        existing: tuple[int, ...] = ()
        if threshold is not None and threshold.operator == "absent":
            existing = tuple(self.subjects.all(in_force.base.subject_kind))
        newest = self._values.of(in_force.base.series)
        for key, outcome in threshold_outcomes(in_force, newest, now=self.now, memories=memories, existing=existing):
            self._look(in_force, key, outcome)

    @property
    def _values(self) -> NewestValues:
        if not hasattr(self, "_newest"):
            self._newest = NewestValues()
        return self._newest

    def _judge_probes(self, in_force: RuleInForce, known: set[Key]) -> None:
        for key in self.probing.keys_known():
            definition = in_force.of(key)
            if definition is None:
                continue
            found = self._probe_found(in_force, key, is_standing=key in known)
            if found is not None:
                self._look(in_force, key, Outcome(definition, *found))

    def _probe_found(self, in_force: RuleInForce, key: Key, *, is_standing: bool) -> Any:
        definition = in_force.of(key)
        if definition is None:
            return None
        if definition.kind == RuleKind.DOWN:
            return down_found(self.probing, key, is_standing=is_standing)
        if definition.kind == RuleKind.SILENT:
            return silence_found(self.probing, key)
        is_latency = definition.family in {Family.LATENCY, Family.P95}
        return count_found(
            definition,
            self.probing,
            key,
            with_failures=not (is_latency and key in self._unavailable),
            is_standing=is_standing,
            cold=self._cold(key) if is_latency else None,
        )

    @property
    def _unavailable(self) -> set[Key]:
        """Return the subjects whose availability fires: their failures are told by that, not as latency."""
        if not hasattr(self, "_down"):
            ids = {each.rule.pk for each in self.rules if each.base.family == Family.AVAILABILITY}
            is_firing = Phase.FIRING
            self._down = {
                (key[1], key[2]) for key, standing in self.standings.items()
                if key[0] in ids and standing.state.phase == is_firing
            }  # fmt: skip
        return self._down

    def _cold(self, key: Key) -> Interval | None:
        if key[0] != "endpoint":
            return None
        subject = self.subjects.get(key)
        if subject is None or subject.cold_until < self.now - LOOK_BACK:
            return None
        return subject.cold_from, subject.cold_until

    def _look(self, in_force: RuleInForce, key: Key, outcome: Outcome) -> None:
        """Take one outcome in."""
        self.result.outcomes += 1
        place = (in_force.rule.pk, *key)
        standing = self.standings.get(place) or Standing(None)
        state = rule_step(standing.state, outcome.reading, now=self.now, holding=outcome.definition.holding)
        if state.phase == Phase.INACTIVE and outcome.memory == EMPTY and standing.row is None:
            return
        standing.state, standing.memory, standing.is_touched = state, outcome.memory, True
        if state.phase != Phase.INACTIVE and (outcome.reading.is_breach or not standing.evidence):
            standing.evidence = outcome.evidence
        self.standings[place] = standing

    def _firing(self) -> dict[tuple[str, str, int], Firing]:
        """Return what fires by family and subject."""
        found: defaultdict[tuple[str, str, int], Firing] = defaultdict(Firing)
        by_id = {each.rule.pk: each for each in self.rules}
        for (rule_id, kind, subject_id), standing in sorted(self.standings.items()):
            in_force = by_id.get(rule_id)
            if in_force is None or standing.state.phase != Phase.FIRING or not standing.is_touched:
                continue
            definition = in_force.of((kind, subject_id)) or in_force.base
            severity = standing.state.severity or definition.severity
            found[definition.family, kind, subject_id].add(
                in_force.rule.key, definition, severity, standing.evidence,
                is_silent=standing.state.silent_since is not None,
            )  # fmt: skip
        return dict(found)

    def _write(self) -> None:
        """Keep what is not quiet; what did not change is not written."""
        gone, fresh = [], []
        by_id = {each.rule.pk: each.rule.version for each in self.rules}
        for (rule_id, kind, subject_id), standing in self.standings.items():
            row = standing.row
            is_quiet = standing.state.phase == Phase.INACTIVE and standing.memory == EMPTY
            if not standing.is_touched or rule_id not in by_id or is_quiet:
                if row is not None:
                    gone.append(row.pk)
                continue
            made = RuleStanding(
                rule_id=rule_id, rule_version=by_id[rule_id], subject_kind=kind, subject_id=subject_id,
                phase=standing.state.phase, since=_moment(standing.state.since or self.now, self.at),
                state=state_pack(standing.state), memory=memory_pack(standing.memory), evidence=standing.evidence,
            )  # fmt: skip
            if row is None or _differs(row, made):
                fresh.append(made)
        if gone:
            RuleStanding.objects.filter(pk__in=gone).delete()
        RuleStanding.objects.bulk_create(
            fresh,
            update_conflicts=True,
            unique_fields=["rule", "subject_kind", "subject_id"],
            update_fields=["rule_version", "phase", "since", "state", "memory", "evidence"],
        )


def _differs(row: RuleStanding, made: RuleStanding) -> bool:
    names = ("rule_version", "phase", "state", "memory", "evidence")
    return any(getattr(row, name) != getattr(made, name) for name in names)


def _moment(seconds: float, at: datetime) -> datetime:
    return datetime.fromtimestamp(seconds, at.tzinfo)
