"""How long an endpoint takes, by everything that measures it: probes of each place, engines; beside one another, never mixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from endpoints.engine_figures import (
    EngineLatency,
    Source,
    engine_latency,
    engine_sources,
    missing_everywhere,
)
from endpoints.models import Endpoint
from fleet.models import Server
from monitoring.percentiles import Percentile
from monitoring.probing.models import Probe
from monitoring.probing.reading import Latency, Vantage, latency, latency_series
from monitoring.probing.tables import PANEL

SUBJECT: Final = "endpoint"
MOST_PROBES: Final = 20
LONGEST: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class ProbeLatency:
    """What one probe found, by place and connection. step_seconds, steps: percentiles of each step."""

    probe: Probe
    places: Sequence[Latency]
    step_seconds: int
    steps: Mapping[Vantage, Sequence[tuple[datetime, Sequence[Percentile]]]]


@dataclass(frozen=True, slots=True)
class EndpointLatency:
    """All of it over a range. servers: names of the places by id. missing: readings that no engine of it exposes."""

    probes: Sequence[ProbeLatency]
    engine_step_seconds: int
    engines: Sequence[EngineLatency]
    sources: Sequence[Source]
    missing: Sequence[str]
    servers: Mapping[int, str]


def probes_about(endpoint: Endpoint) -> list[Probe]:
    """Return the probes that are about an endpoint, by name."""
    return list(Probe.objects.filter(subject_kind=SUBJECT, subject_id=endpoint.pk).order_by("name")[:MOST_PROBES])


def endpoint_latency(*, endpoint: Endpoint, start: datetime, end: datetime, points: int) -> EndpointLatency:
    """Return what probes and engines say over [start, end). Two queries for each probe and five more."""
    probes = [_probed(probe, start, end, points) for probe in probes_about(endpoint)]
    step, engines = engine_latency(endpoint=endpoint, start=start, end=end, points=points)
    sources = engine_sources(endpoint=endpoint)
    places = {place.server_id for one in probes for place in one.places} - {PANEL}
    servers = dict(Server.objects.filter(pk__in=places).values_list("pk", "name"))
    return EndpointLatency(probes, step, engines, sources, missing_everywhere(sources), servers)


def _probed(probe: Probe, start: datetime, end: datetime, points: int) -> ProbeLatency:
    whole = latency(
        probe_id=probe.pk, metric=probe.metric, start=start, end=end, threshold_ms=probe.threshold_ms
    )  # fmt: skip
    step, lines = latency_series(probe_id=probe.pk, metric=probe.metric, start=start, end=end, points=points)
    return ProbeLatency(probe, whole, step, lines)
