"""What a diagnosis has to know of an endpoint: its replicas’ machines, cards and ports, and how to ask their engine directly."""

from endpoints.engines.base import EngineSpec
from endpoints.models import Endpoint, Replica, ReplicaGpu
from endpoints.services.launching import replica_launch
from endpoints.services.routing import routed
from monitoring.diagnosing.asked import Host, Subject, register_subject
from monitoring.probing.models import Probe


def subject_for(probe: Probe) -> Subject | None:
    """Return the endpoint that a probe is about, with the replicas that take requests; None when it is deleted."""
    endpoint = Endpoint.objects.filter(pk=probe.subject_id or 0, deleted_at=None).first()
    if endpoint is None:
        return None
    replicas = list(
        routed(Replica.objects.filter(endpoint=endpoint).select_related("revision", "server__serving")).order_by("pk")
    )
    launch = replica_launch(replicas[0]) if replicas else None
    revision = replicas[0].revision if replicas else None
    return Subject(
        kind="endpoint",
        id=endpoint.pk,
        name=endpoint.name,
        hosts=[Host(server_id=each.server_id, port=each.port, replica_id=each.pk) for each in replicas],
        bearer=endpoint.upstream_key if launch is not None and launch.api_key_variable is not None else "",
        path_prefix=f"/{endpoint.name}",
        model=EngineSpec.from_json(revision.spec).name_for_callers() if revision is not None else "",
        metrics_path=(launch.metrics_path or "") if launch is not None else "",
        metrics_port=launch.metrics_port if launch is not None else None,
        gpu_ids=list(ReplicaGpu.objects.filter(replica__in=replicas).values_list("gpu_id", flat=True)),
        replicas=max(len(replicas), 1),
        max_num_seqs=revision.slots if revision is not None else None,
    )


def register_all() -> None:
    """Say how endpoints are found (once, when the app starts)."""
    register_subject("endpoint", subject_for)
