"""What pages hear of diagnoses: topics `diagnosis.<id>` and `diagnoses`."""

from typing import Any

from monitoring.diagnosing.models import DiagnosisReport
from panel.core.live import LiveData, publish_later


def report_live(report: DiagnosisReport) -> dict[str, Any]:
    """Return a report as it stands in live frames."""
    return {
        "id": report.pk,
        "state": report.state,
        "subject_kind": report.subject_kind,
        "subject_id": report.subject_id,
        "subject_name": report.subject_name,
        "verdict": report.verdict,
        "level": report.level,
        "percent": report.progress.get("percent"),
        "step": report.progress.get("step", ""),
        "failure": report.failure,
        "ended_at": report.ended_at.isoformat() if report.ended_at is not None else None,
    }


def tell_report(report: DiagnosisReport) -> None:
    """Publish a report as it stands, once the transaction commits."""
    data: LiveData = {"diagnoses": {str(report.pk): report_live(report)}}
    publish_later(f"diagnosis.{report.pk}", data)
    publish_later("diagnoses", data)
