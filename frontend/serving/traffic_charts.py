"""The charts of an endpoint's traffic: what they show, for which times, and what changed then."""

from datetime import timedelta
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _

from endpoints.models import Endpoint
from endpoints.traffic_series import STEPS
from frontend.board import MARKERS, Board, Page, board_of, marker_of
from frontend.chart_config import Subject
from frontend.chart_data import summaries_of
from frontend.chart_specs import TRAFFIC_CHARTS
from frontend.formatting import said_of
from frontend.ranges import RANGES, TimeRange
from panel.accounts.models import AuditEntry
from panel.accounts.selectors.audit import audit_list, event_list

SPAN_SECONDS: Final = float(STEPS[0])
LONGEST: Final = timedelta(hours=24)
# What changes how an endpoint answers: deploys, and replicas that are gone.
_MARKED: Final = (
    "rollout.started",
    "rollout.succeeded",
    "rollout.returned",
    "rollout.failed",
    "rollout.cancelled",
    "replica.failed",
    "replica.lost",
    "replica.not_ready",
)


def traffic_range(shown: TimeRange) -> TimeRange:
    """Return a time that percentiles are told for: a longer one is cut to its last day."""
    if shown.end - shown.start <= LONGEST:
        return shown
    key = "24h" if shown.is_live else "custom"
    return TimeRange(key, shown.end - LONGEST, shown.end)


def range_choices(shown: TimeRange) -> list[dict[str, Any]]:
    """Return the buttons of the times that can be chosen."""
    return [choice for choice in shown.choices() if RANGES[choice["key"]][0] <= LONGEST]


def traffic_subject(endpoint: Endpoint) -> Subject:
    """Return what the charts are of."""
    return Subject("endpoint", endpoint.pk, endpoint.name, endpoint.name)


def traffic_markers(endpoint: Endpoint, shown: TimeRange) -> list[dict[str, Any]]:
    """Return deploys, changes of the number of replicas and replicas that went, the newest hundred of each. Two queries."""
    end = None if shown.is_live else shown.end
    events = event_list(subject_kind="endpoint", subject_id=endpoint.pk, start=shown.start, end=end)
    scaled = audit_list(
        action="endpoint.scale", target_kind="endpoint", target_id=endpoint.pk, start=shown.start, end=end
    )
    return [
        *(marker_of(event) for event in events.filter(kind__in=_MARKED)[:MARKERS]),
        *(_scale_marker(entry) for entry in scaled[:MARKERS]),
    ]


def _scale_marker(entry: AuditEntry) -> dict[str, Any]:
    numbers = {name: (said or {}).get("replicas") for name, said in (("before", entry.before), ("after", entry.after))}
    sentence = _("Replicas wanted: %(before)s → %(after)s") % numbers
    return {
        "id": f"scale-{entry.pk}",
        "at": entry.at.timestamp(),
        "severity": "info",
        "label": said_of(entry.target_name, sentence),
        "href": f"{reverse('events')}?subject=endpoint:{entry.target_id}",
    }


def traffic_board(endpoint: Endpoint, shown: TimeRange) -> Board:
    """Return the charts of a time (see `traffic_range`). Ten queries."""
    subjects = [traffic_subject(endpoint)]
    url = f"/api/v1/endpoints/{endpoint.name}/traffic/series/"
    return board_of(
        page=Page("endpoint", endpoint.pk, f"endpoint.{endpoint.pk}", [url], SPAN_SECONDS, is_polled=True),
        charts=TRAFFIC_CHARTS,
        subjects=subjects,
        time_range=shown,
        markers=traffic_markers(endpoint, shown),
        summaries=summaries_of(TRAFFIC_CHARTS, subjects, shown),
    )
