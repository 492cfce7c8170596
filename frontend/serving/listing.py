"""The list of endpoints: what an address asks for, and rows with traffic, queue and what an hour costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Max, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from endpoints.costs import HourlyCost, endpoint_costs
from endpoints.engines.registry import ENGINES
from endpoints.enums import Phase
from endpoints.models import Endpoint, Gateway, Replica, Revision, Rollout
from endpoints.selectors import endpoint_list, gateway_list, gateway_url
from endpoints.traffic import WINDOWS, Latency, Traffic, traffic_of
from endpoints.traffic_series import request_rates
from frontend.serving.words import engine_label
from panel.core.errors import NotFound

WINDOW: Final = "15m"
SPARK_POINTS: Final = 46
SPARK_WIDTH: Final = 96.0
SPARK_HEIGHT: Final = 24.0
BAD: Final = frozenset({Phase.FAILED, Phase.UNAVAILABLE, Phase.DEGRADED})


@dataclass(frozen=True, slots=True)
class EndpointFilter:
    """What an address asks of the list."""

    search: str = ""
    phase: str = ""
    engine: str = ""
    project: str = ""

    @property
    def is_active(self) -> bool:
        """Say whether any row may be hidden."""
        return any((self.search, self.phase, self.engine, self.project))


def read_filter(query: Mapping[str, str]) -> EndpointFilter:
    """Return the filter of an address; what it cannot mean is left out."""
    phase, engine = query.get("phase", ""), query.get("engine", "")
    return EndpointFilter(
        search=query.get("q", "").strip()[:100],
        phase=phase if phase in {*Phase.values, "bad"} else "",
        engine=engine if engine in ENGINES else "",
        project=query.get("project", "").strip()[:64],
    )


def filtered(wanted: EndpointFilter) -> QuerySet[Endpoint]:
    """Return the endpoints that pass, by name."""
    phases = {"": (), "bad": tuple(BAD)}.get(wanted.phase, (wanted.phase,))
    found = endpoint_list(phase=phases, project=wanted.project, search=wanted.search)
    if wanted.engine:
        is_active = Q(active_revision__engine=wanted.engine)
        found = found.filter(is_active | Q(active_revision=None, target_revision__engine=wanted.engine))
    return found


def choices() -> dict[str, Any]:
    """Return what the filters offer. One query."""
    projects = Endpoint.objects.filter(deleted_at=None).exclude(project="").order_by("project")
    return {
        "phases": Phase.choices,
        "engines": [(kind, engine.label) for kind, engine in ENGINES.items()],
        "projects": list(projects.values_list("project", flat=True).distinct()),
    }


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """One endpoint of the list.

    waiting: of all its engines, None when none tells; address: at the first gateway, "" without; deployed_at: when the last
    rollout began; spark: its requests as the data of a path, "" when nobody told of any.
    """

    endpoint: Endpoint
    ready: int
    pending: int
    engine: str
    model: str
    traffic: Traffic
    waiting: float | None
    cost: HourlyCost
    address: str
    deployed_at: datetime | None
    spark: str

    @property
    def error_percent(self) -> float | None:
        """Return the share of requests that failed."""
        return self.traffic.error_percent

    @property
    def tokens_per_second(self) -> float | None:
        """Return the tokens of callers with a key."""
        return self.traffic.tokens_per_second

    @property
    def first_byte(self) -> Latency:
        """Return the time to the first byte, which for streams is that of the first token."""
        return self.traffic.latency["first_byte"]

    @property
    def first_byte_p99_ms(self) -> float | None:
        """Return the P99 of the time to the first byte, None without enough samples."""
        return self.first_byte.quantiles[0.99]

    @property
    def fewer(self) -> int | None:
        """Return one replica less, None when none is wanted."""
        return self.endpoint.desired_replicas - 1 if self.endpoint.desired_replicas else None

    @property
    def more(self) -> int:
        """Return one replica more."""
        return self.endpoint.desired_replicas + 1

    @property
    def total(self) -> Latency:
        """Return the whole time of its requests."""
        return self.traffic.latency["total"]

    @property
    def p99_ms(self) -> float | None:
        """Return the P99 of the whole time, None without enough samples."""
        return self.total.quantiles[0.99]


def rows_of(endpoints: Sequence[Any], at: datetime) -> list[EndpointRow]:
    """Return endpoints (of `endpoint_list`) with their numbers. Fifteen queries at most however many."""
    if not endpoints:
        return []
    ids = [each.pk for each in endpoints]
    made = {each.pk: each.created_at for each in endpoints}
    traffic = traffic_of(endpoints=made, window=WINDOWS[WINDOW], at=at, parts=["total", "first_byte"])
    rates = request_rates(endpoints=made, start=at - WINDOWS[WINDOW], end=at, points=SPARK_POINTS)
    deployed = Rollout.objects.filter(endpoint__in=ids).values_list("endpoint_id").annotate(Max("started_at"))
    newest = dict(deployed)
    costs = endpoint_costs(endpoint_ids=ids, at=at)
    open_replicas = Replica.objects.filter(endpoint__in=ids, ended_at=None).values("endpoint_id")
    waiting = dict(open_replicas.annotate(queue=Sum("waiting")).values_list("endpoint_id", "queue"))
    gateway = gateway_list().first()
    base = gateway_url(gateway) if gateway is not None else ""
    untried = _newest([each.pk for each in endpoints if not (each.active_revision_id or each.target_revision_id)])
    return [
        EndpointRow(
            endpoint=each, ready=each.ready, pending=each.pending, **_what_runs(each, untried.get(each.pk)),
            traffic=traffic[each.pk], waiting=waiting.get(each.pk), cost=costs[each.pk],
            address=f"{base}/{each.name}/v1" if base else "",
            deployed_at=newest.get(each.pk), spark=spark_path(rates[each.pk]),
        )
        for each in endpoints
    ]  # fmt: skip


def row_of(endpoint: Endpoint, at: datetime) -> EndpointRow:
    """Return one endpoint's row. Raises NotFound."""
    return rows_of([endpoint_found(endpoint.pk)], at)[0]


def spark_path(values: Sequence[float | None]) -> str:
    """Return the data of a path of SPARK_WIDTH by SPARK_HEIGHT from zero to the highest; a gap starts a new line."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    step, top = SPARK_WIDTH / max(len(values) - 1, 1), max(*known, 1e-9, 0.0)
    parts, is_drawing = [], False
    for at, value in enumerate(values):
        if value is not None:
            y = SPARK_HEIGHT - 2 - value / top * (SPARK_HEIGHT - 4)
            parts.append(f"{'L' if is_drawing else 'M'}{at * step:.1f} {y:.1f}")
        is_drawing = value is not None
    return "".join(parts)


def _newest(ids: Sequence[int]) -> dict[int, Revision]:
    """Return the newest revision of endpoints of which nothing serves or is rolled out: what was tried last."""
    if not ids:
        return {}
    return {each.endpoint_id: each for each in Revision.objects.filter(endpoint__in=ids).order_by("number")}


def _what_runs(endpoint: Any, tried: Revision | None) -> dict[str, str]:
    revision = endpoint.active_revision or endpoint.target_revision or tried
    return {
        "engine": engine_label(revision.engine) if revision is not None else "",
        "model": str(revision.spec.get("model", "")) if revision is not None else "",
    }


def endpoint_counts() -> dict[str, int]:
    """Return how many endpoints there are, and how many callers of are hurt. One query."""
    phases = list(Endpoint.objects.filter(deleted_at=None).values_list("phase", flat=True))
    bad = sum(phase in BAD for phase in phases)
    return {"all": len(phases), "bad": bad, "ok": len(phases) - bad}


def has_gateway() -> bool:
    """Say whether callers have a way in. One query."""
    return Gateway.objects.exists()


def endpoint_found(endpoint_id: int) -> Any:
    """Return one endpoint with `ready` and `pending`. Raises NotFound."""
    found = endpoint_list().filter(pk=endpoint_id).first()
    if found is None:
        raise NotFound(_("There is no such endpoint, or it was deleted."))
    return found
