"""The newest results of probes as Prometheus metrics: what is fresh, by probe, place and connection; places are never pooled.

A failed probe has no duration and `success` 0; one that says nothing of its target (a place without network) is left out of
both and stands in `place_down`. Percentiles are not given: Prometheus makes its own of what it scrapes.
"""

from collections.abc import Iterator
from typing import Any, Final

from fleet.models import Server
from monitoring.exposition import Exposition, labels_text
from monitoring.probing.models import Probe
from monitoring.probing.reading import latest
from monitoring.probing.tables import PANEL
from panel.core.clock import now

# Of how many intervals a result tells; a probe that is late says nothing of the present.
FRESH_INTERVALS: Final = 3
LEAST_SECONDS: Final = 60.0
_DURATIONS: Final = (
    "dns_ms", "tcp_ms", "tls_ms", "send_ms", "wait_ms", "transfer_ms", "ttfb_ms", "ttft_ms", "tpot_ms", "e2e_ms", "total_ms",
)  # fmt: skip
_SILENT: Final = frozenset({"vantage_down", "skipped"})

Row = tuple[str, dict[str, Any]]  # labels, the result


def probe_metrics(write: Exposition) -> Iterator[str]:
    """Return every family of probes, in three queries. Raises DatabaseError."""
    rows = _rows()
    told = [(labels, one) for labels, one in rows if one["outcome"] not in _SILENT]
    yield write.gauge(
        "fleetdeck_probe_success",
        "1 when the newest result is ok, 0 when it failed.",
        ((labels, float(one["outcome"] == "ok")) for labels, one in told),
    )
    yield write.gauge(
        "fleetdeck_probe_place_down",
        "1 when the newest result says that the place itself has no network.",
        ((labels, float(one["outcome"] == "vantage_down")) for labels, one in rows),
    )
    yield write.gauge(
        "fleetdeck_probe_suspect",
        "1 when the prober itself was late or busy, so that its newest result is not alerted on.",
        ((labels, float(one["is_suspect"])) for labels, one in rows),
    )
    yield write.gauge(
        "fleetdeck_probe_last_result_timestamp_seconds",
        "When the newest result began.",
        ((labels, one["started_at"].timestamp()) for labels, one in rows),
    )
    for name in _DURATIONS:
        yield write.gauge(
            f"fleetdeck_probe_{name.removesuffix('_ms')}_seconds",
            "Of the newest good result; no series where it did not happen.",
            ((labels, _seconds(one.get(name))) for labels, one in told if one["outcome"] == "ok"),
        )


def _rows() -> list[Row]:
    moment = now()
    probes = {probe.pk: probe for probe in Probe.objects.filter(is_enabled=True).defer("bearer").order_by("name")}
    if not probes:
        return []
    found = latest(probe_ids=list(probes), at=moment)
    servers = dict(Server.objects.filter(retired_at=None).values_list("pk", "name"))
    rows: list[Row] = []
    for pk, probe in probes.items():
        limit = max(FRESH_INTERVALS * probe.interval_seconds, LEAST_SECONDS)
        for one in found.get(pk, ()):
            place = "panel" if one["server"] in {None, PANEL} else servers.get(one["server"])
            if place is not None and (moment - one["started_at"]).total_seconds() <= limit:
                kind = str(probe.target.get("kind", ""))
                labels = labels_text(probe=probe.name, kind=kind, place=place, connection=one["connection"])
                rows.append((labels, dict(one)))
    return rows


def _seconds(value: float | None) -> float | None:
    return None if value is None else value / 1000
