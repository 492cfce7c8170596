"""The list of probes: what an address asks for, and rows with the last result, percentiles of a day, and when it is next."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from fleet.agent.probes.slots import slot_after
from fleet.agent.probes.target import Target
from frontend.probing import words
from monitoring.percentiles import Percentile
from monitoring.probing.lists import BAR, Check, bars, latencies, uptime_percent, worst
from monitoring.probing.models import Probe
from monitoring.probing.reading import Latency, latest
from monitoring.probing.tables import PANEL
from monitoring.probing.targets import target_of
from panel.core.errors import InvalidInput, NotFound

DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ProbeFilter:
    """What an address asks of the list."""

    search: str = ""
    kind: str = ""
    place: str = ""

    @property
    def is_active(self) -> bool:
        """Say whether any row may be hidden."""
        return any((self.search, self.kind, self.place))


def read_filter(query: Mapping[str, str]) -> ProbeFilter:
    """Return the filter of an address; what it cannot mean is left out."""
    kind, place = query.get("kind", ""), query.get("place", "")
    return ProbeFilter(
        search=query.get("q", "").strip()[:100],
        kind=kind if kind in words.KINDS else "",
        place=place if place in {"panel", "agents"} or place.removeprefix("server:").isdecimal() else "",
    )


def filtered(wanted: ProbeFilter) -> QuerySet[Probe]:
    """Return the probes that pass, by name."""
    found = Probe.objects.order_by("name")
    if wanted.search:
        found = found.filter(Q(name__icontains=wanted.search) | Q(target__host__icontains=wanted.search))
    if wanted.kind:
        found = found.filter(target__kind=wanted.kind)
    return found.filter(vantages__contains=[wanted.place]) if wanted.place else found


@dataclass(frozen=True, slots=True)
class BarCell:
    """One result of the bar. x: of 1000; shape: good, bad, silent; title: when and what."""

    x: float
    shape: str
    is_suspect: bool


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One probe of the list.

    newest: the newest result, None without one within the hour. worst: the place that is worst off, of worst_name; None
    without results today. bar_words: the bar for those who do not see it. next_at: of the place that is next, None while paused.
    """

    probe: Probe
    target: Target | None
    kind: str
    where: str
    vantages: Sequence[str]
    newest: Mapping[str, Any] | None
    newest_place: str
    worst: Latency | None
    worst_name: str
    bar: Sequence[BarCell]
    bar_words: str
    certificate_days: float | None
    next_at: datetime | None
    bad_places: Sequence[str]

    @property
    def outcome(self) -> str:
        """Return the newest outcome; empty without one."""
        return str(self.newest["outcome"]) if self.newest is not None else ""

    @property
    def tone(self) -> str:
        """Return the mark."""
        if not self.probe.is_enabled:
            return "silenced"
        return words.outcome_tone(self.outcome) if self.outcome else "unknown"

    @property
    def word(self) -> str:
        """Return the state in words."""
        if not self.probe.is_enabled:
            return _("Paused")
        return words.outcome_word(self.outcome) if self.outcome else _("No result yet")

    @property
    def uptime(self) -> float | None:
        """Return how many of a hundred results of the worst place were ok."""
        return uptime_percent(self.worst) if self.worst is not None else None

    @property
    def p50(self) -> Percentile | None:
        """Return the median of the worst place."""
        return self.worst.percentiles[0] if self.worst is not None else None

    @property
    def p99(self) -> Percentile | None:
        """Return the 99th percentile of the worst place."""
        return self.worst.percentiles[2] if self.worst is not None else None

    @property
    def timeout_seconds(self) -> float | None:
        """Return how long one probe may take, as it is applied."""
        return self.target.effective_timeout_seconds if self.target is not None else None


def rows_of(probes: Sequence[Probe], *, at: datetime) -> list[ProbeRow]:
    """Return probes with what was found. Four queries however many."""
    newest = latest(probe_ids=[probe.pk for probe in probes], at=at) if probes else {}
    shown, day = bars(probes, at=at), latencies(probes, start=at - DAY, end=at)
    servers = {result["server"] or PANEL for found in newest.values() for result in found}
    servers |= {entry.server_id for found in day.values() for entry in found}
    servers |= {pk for probe in probes for pk in words.server_ids(probe.vantages)}
    names = words.place_names(servers)
    return [
        _row(probe, Found(newest.get(probe.pk, []), shown.get(probe.pk, []), day.get(probe.pk, [])), names, at)
        for probe in probes
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """What was found of one probe: the newest of each place, the last ones, a day of each place."""

    newest: Sequence[Mapping[str, Any]]
    checks: Sequence[Check]
    day: Sequence[Latency]


def _row(probe: Probe, found: Found, names: Mapping[int, str], at: datetime) -> ProbeRow:
    target, slow = target_found(probe), worst(found.day)
    last = max(found.newest, key=lambda each: each["started_at"], default=None)
    days = [each["certificate_days"] for each in found.newest if each.get("certificate_days") is not None]
    bad = sorted({names[each["server"] or PANEL] for each in found.newest if each["outcome"] == "vantage_down"})
    places = {entry.server_id for entry in found.day}
    return ProbeRow(
        probe=probe,
        target=target,
        kind=words.kind_word(str(probe.target.get("kind", ""))),
        where=where_of(target),
        vantages=words.vantage_words(probe.vantages, names),
        newest=last,
        newest_place=names[last["server"] or PANEL] if last is not None else "",
        worst=slow,
        worst_name=names[slow.server_id] if slow is not None and len(places) > 1 else "",
        bar=bar_of(found.checks),
        bar_words=bar_words(found.checks),
        certificate_days=min(days, default=None),
        next_at=next_of(probe, target, at) if target is not None and probe.is_enabled else None,
        bad_places=bad,
    )


def target_found(probe: Probe) -> Target | None:
    """Return what is probed; None for one that an older version kept and this one cannot read."""
    try:
        return target_of(probe)
    except InvalidInput:
        return None


def where_of(target: Target | None) -> str:
    """Return where a probe goes, short."""
    if target is None:
        return "—"
    host = target.host if target.kind in {"dns", "icmp"} else f"{target.host}:{target.default_port}"
    return f"{host}{target.path}" if target.path != "/" else host


def next_of(probe: Probe, target: Target, at: datetime) -> datetime | None:
    """Return when the next of its places looks; of `agents` the moments are not known here."""
    names = ["panel"] if "panel" in probe.vantages else []
    names += [f"server-{pk}" for pk in words.server_ids(probe.vantages)]
    due = [
        slot_after(at.timestamp(), target=probe.pk, vantage=name, interval_seconds=target.interval_seconds)
        for name in names
    ]
    return datetime.fromtimestamp(min(due), UTC) if due else None


def bar_of(checks: Sequence[Check]) -> list[BarCell]:
    """Return the bar's cells, the newest at the right."""
    first = BAR - len(checks)
    return [
        BarCell(
            x=round((first + place) * 1000 / BAR, 1),
            shape="good" if check.outcome == "ok" else "silent" if check.outcome in words.SILENT else "bad",
            is_suspect=check.is_suspect,
        )
        for place, check in enumerate(checks)
    ]


def bar_words(checks: Collection[Check]) -> str:
    """Return what the bar shows, in words."""
    bad = sum(check.outcome != "ok" and check.outcome not in words.SILENT for check in checks)
    return _("The last %(n)s checks: %(bad)s failed") % {"n": len(checks), "bad": bad}


def probe_found(probe_id: int) -> Probe:
    """Return one probe. Raises NotFound."""
    probe = Probe.objects.filter(pk=probe_id).first()
    if probe is None:
        raise NotFound(_("There is no such probe, or it was removed."))
    return probe
