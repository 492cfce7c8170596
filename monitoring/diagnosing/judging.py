"""From a report with what its places found to its diagnosis."""

from typing import Final

import msgspec

from fleet.agent.rounds.plan import Found
from monitoring.diagnosing.assembling import evidence_of, measure_of, typical_tokens
from monitoring.diagnosing.models import DiagnosisReport
from monitoring.diagnosing.places import STREAMS, Place, places_of
from monitoring.diagnosing.surroundings import Surroundings
from monitoring.diagnosis.evidence import EngineFacts, Evidence, Objective
from monitoring.diagnosis.report import Diagnosis
from monitoring.diagnosis.tree import diagnose

USUAL_TOKENS: Final = 512


def found_of(report: DiagnosisReport) -> list[tuple[Place, Found]]:
    """Return what each place measured, those that did."""
    return [
        (place, msgspec.convert(report.found[place.key], Found))
        for place in places_of(report)
        if place.key in report.found
    ]


def evidence_for(report: DiagnosisReport) -> Evidence:
    """Return the evidence of a report, as it was kept. Raises ValueError for what contradicts itself."""
    found = found_of(report)
    around = Surroundings.from_json(report.evidence)
    outside = {place.name: one for place, one in found if place.role == "outside"}
    is_stream = report.target["kind"] in STREAMS
    return evidence_of(
        objective=Objective(report.threshold_ms, measure_of(report.metric, is_stream=is_stream), report.percentile),
        outside=outside,
        hosts=[one for place, one in found if place.role == "host"],
        begin=report.begin_at.timestamp(),
        slot_seconds=report.slot_seconds,
        typical=typical_tokens(outside.values(), USUAL_TOKENS),
        engine=EngineFacts(
            max_num_seqs=report.context.get("max_num_seqs"), has_prefix_cache=report.context.get("has_prefix_cache")
        ),
        gpus=around.gpus,
        cpu=around.cpu,
        markers=around.markers,
        replicas=int(report.context.get("replicas") or 1),
    )


def judge(report: DiagnosisReport) -> Diagnosis:
    """Return the diagnosis; the same report always comes to the same. Raises ValueError."""
    return diagnose(evidence_for(report), seed=report.pk)
