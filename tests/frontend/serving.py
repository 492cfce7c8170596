"""Endpoints in several states, for tests of their pages: made by the panel's own services, with machines that obey."""

from datetime import timedelta

from endpoints.engines.base import EngineSpec
from endpoints.models import ApiKey, Gateway, Replica, ReplicaLog, Rollout, Secret
from endpoints.services.gateways import gateway_create
from endpoints.services.keys import key_create, secret_set
from endpoints.services.rollouts import revision_deploy
from panel.core.clock import now
from tests.endpoints.test_traffic import histogram, leased, span
from tests.endpoints.world import Site, deployed, open_replicas, reconcile, settle, spec
from tests.fleet.factories import OPERATOR

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


def vllm(**changes):
    """A language model as a plain process."""
    given = {"kind": "vllm", "model": "Qwen/Qwen3-8B", "version": "0.18.0", "runtime": "process", **changes}
    return EngineSpec.from_json({"arguments": {"max_num_seqs": 64, "max_model_len": 8192}, **given})


def write(replica, *lines, generation=1, offset=0):
    """Lines of a replica's log."""
    text = "".join(f"{line}\n" for line in lines)
    return ReplicaLog.objects.create(
        replica=replica, generation=generation, offset=offset, text=text, received_at=now()
    )


def serving_world():
    """Two servers, a gateway, an endpoint that answers, one whose deploy failed, one without room, a key and a secret."""
    first, second = Site("rack-1", cards=2), Site("rack-2", cards=2)
    leased(first.server, "20")
    gateway = gateway_create(server_id=first.server.pk, actor=OPERATOR)
    chat = deployed("chat", engine=vllm(), gpus=1, desired_replicas=2)
    settle(sites=[first, second], health="ok", running=3.0, waiting=2.0, kv_cache_percent=41.0)
    Gateway.objects.update(
        reported_at=now(), state="serving", data_plane="envoy 1.36", applied_version=10_000
    )  # fmt: skip
    span(gateway, chat, statuses={"200": 400, "429": 3}, queue=histogram(e3=400), first_byte=histogram(e6=400))
    replica = open_replicas(chat)[0]
    write(replica, "INFO Starting to load model Qwen/Qwen3-8B...", "INFO:     Application startup complete.")
    write(replica, "INFO earlier start", generation=0)

    broken = deployed("broken", engine=vllm(), gpus=1, desired_replicas=1)
    reconcile()
    failing = open_replicas(broken)[0]
    write(failing, "INFO Starting to load model Qwen/Qwen3-8B...", OOM)
    site = first if failing.server_id == first.server.pk else second
    site.obey(state="failed", health="down", reason="exited", detail=OOM)
    reconcile()

    crowded = deployed("crowded", engine=spec(), gpus=2, desired_replicas=1, project="lab")
    reconcile()
    revision_deploy(endpoint_id=chat.pk, spec=vllm(version="0.19.0"), actor=OPERATOR)
    key, _issued = key_create(name="app", actor=OPERATOR, endpoints=["chat"], requests_per_minute=60)
    secret_set(name="HF_TOKEN", value="hf_very_secret_value", actor=OPERATOR)
    return {
        "endpoint": chat,
        "broken": broken,
        "crowded": crowded,
        "replica": replica,
        "failing": failing,
        "run": Rollout.objects.filter(endpoint=chat).latest("pk"),
        "failed_run": Rollout.objects.get(endpoint=broken),
        "gateway": gateway,
        "server": first.server,
        "key": key,
        "secret": Secret.objects.get(),
        "sites": [first, second],
    }


def later(replica, seconds):
    """Let a replica have taken so long to be ready."""
    Replica.objects.filter(pk=replica.pk).update(ready_at=replica.created_at + timedelta(seconds=seconds))


__all__ = ["ApiKey", "later", "serving_world", "vllm", "write"]
