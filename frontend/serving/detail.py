"""One endpoint as its page shows it: numbers, condition, replicas, traffic, and how to call it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from endpoints.costs import endpoint_costs
from endpoints.engines.base import CustomCommand, EngineSpec
from endpoints.models import Endpoint, Replica
from endpoints.selectors import endpoint_live, endpoint_urls, replica_list, rollout_list
from endpoints.traffic import PARTS, QUANTILES, Latency, Traffic, traffic_of
from frontend.ranges import TimeRange
from frontend.serving.acts import possible_acts
from frontend.serving.words import Said, engine_label, phase_said, replica_said

# Engines that speak OpenAI's API.
CHATTING: Final = frozenset({"vllm", "sglang", "tgi", "trtllm", "transformers", "llamacpp"})
PLACEHOLDER: Final = "YOUR_KEY"
PART_WORDS: Final[Mapping[str, Promise]] = {
    "queue": gettext_lazy("In the queue"),
    "first_byte": gettext_lazy("To the first byte"),
    "total": gettext_lazy("In all"),
}


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """One replica with why it is so. cards: its GPUs' numbers on the server."""

    replica: Replica
    said: Said
    cards: str


def replica_rows(replicas: Sequence[Replica]) -> list[ReplicaRow]:
    """Return replicas (of `replica_list`) in words."""
    return [ReplicaRow(each, replica_said(each), _cards(each)) for each in replicas]


def _cards(replica: Replica) -> str:
    held = [hold.gpu.index for hold in replica.gpu_holds.all()]
    return ", ".join("#?" if index is None else f"#{index}" for index in sorted(held, key=lambda each: each or 0))


def known_of(live: Mapping[str, Any]) -> str:
    """Return what the page shows beside figures; the same text is made of frames in static/js/modules/endpoint.js."""
    endpoint, rollout = live["endpoint"], live["endpoint"]["rollout"]
    names = ("phase", "phase_reason", "desired", "active_revision", "target_revision")
    head = [endpoint[name] for name in names] + [
        rollout["id"] if rollout else None,
        rollout["state"] if rollout else None,
    ]
    fields = ("id", "state", "wanted", "health", "reason", "restarts")
    rows = [[each[name] for name in fields] for each in sorted(live["replicas"].values(), key=lambda each: each["id"])]
    return json.dumps([head, *rows], separators=(",", ":"), ensure_ascii=False)


def status_of(endpoint: Any, at: datetime) -> dict[str, Any]:
    """Return what moves with the endpoint's state. Thirteen queries at most."""
    live = endpoint_live(endpoint)
    rollouts = list(rollout_list(endpoint=endpoint.pk)[:5])
    rollout = next((each for each in rollouts if each.ended_at is None), None)
    waiting = [each["waiting"] for each in live["replicas"].values() if each["waiting"] is not None]
    return {
        "endpoint": endpoint,
        "known": known_of(live),
        "waiting": sum(waiting) if waiting else None,
        "said": phase_said(endpoint, ready=endpoint.ready, rollout=rollout),
        "rollout": rollout,
        "rollouts": rollouts,
        "target": 0 if endpoint.deleting_at else endpoint.desired_replicas,
        "replicas": replica_rows(list(replica_list(endpoint=endpoint.pk, is_open=True))),
        "cost": endpoint_costs(endpoint_ids=[endpoint.pk], at=at)[endpoint.pk],
        "acts": possible_acts(endpoint, rollout),
        "engine": engine_label(_revision(endpoint).engine) if _revision(endpoint) else "",
        "model": str(_revision(endpoint).spec.get("model", "")) if _revision(endpoint) else "",
    }


def _revision(endpoint: Endpoint) -> Any:
    return endpoint.active_revision or endpoint.target_revision


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantile of one part. ms: None below `needs` samples."""

    label: str
    ms: float | None
    needs: int


@dataclass(frozen=True, slots=True)
class Part:
    """Times of one part of requests."""

    key: str
    label: str
    latency: Latency
    figures: Sequence[Figure]


def traffic_context(endpoint: Endpoint, shown: TimeRange) -> dict[str, Any]:
    """Return the traffic card of a time."""
    window = shown.end - shown.start
    found = traffic_of(endpoints={endpoint.pk: endpoint.created_at}, window=window, at=shown.end)[endpoint.pk]
    return {"endpoint": endpoint, "traffic": found, "parts": [_part(name, found) for name in PARTS], "shown": shown}


def _part(name: str, found: Traffic) -> Part:
    latency = found.latency[name]
    figures = [Figure(f"P{share * 100:.0f}", latency.quantiles[share], Latency.needs(share)) for share in QUANTILES]
    return Part(name, str(PART_WORDS[name]), latency, figures)


@dataclass(frozen=True, slots=True)
class Snippets:
    """How to call an endpoint: addresses, and commands to copy; python is empty for an engine that speaks no such API."""

    urls: Sequence[str]
    curl: str
    python: str


def snippets(endpoint: Endpoint, key: str = PLACEHOLDER) -> Snippets:
    """Return commands with the endpoint's real address. key: what stands where the caller's key belongs."""
    urls = endpoint_urls(endpoint)
    revision = _revision(endpoint)
    if not urls or revision is None:
        return Snippets(urls, "", "")
    bearer = f' \\\n  -H "Authorization: Bearer {key}"' if endpoint.requires_key else ""
    spec = EngineSpec.from_json(revision.spec)
    custom = spec.custom or CustomCommand()
    is_chatting = revision.engine in CHATTING or custom.ready_kind == "chat_stream"
    if not is_chatting:
        path = custom.ready_path if revision.engine == "custom" else "/"
        return Snippets(urls, f"curl {urls[0]}{path}{bearer}{_sent(custom.ready_body)}", "")
    model = str((custom.ready_body or {}).get("model") or spec.name_for_callers())
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    curl = f"curl {urls[0]}/v1/chat/completions{bearer}{_sent(body)}"
    return Snippets(urls, curl, _python(urls[0], model, key if endpoint.requires_key else "none"))


def _sent(body: Mapping[str, Any] | None) -> str:
    if body is None:
        return ""
    text = json.dumps(body, ensure_ascii=False).replace("'", "'\\''")
    return f" \\\n  -H 'Content-Type: application/json' \\\n  -d '{text}'"


def _python(url: str, model: str, key: str) -> str:
    return "\n".join(
        (
            "from openai import OpenAI",
            "",
            f'client = OpenAI(base_url="{url}/v1", api_key="{key}")',
            "answer = client.chat.completions.create(",
            f'    model="{model}",',
            '    messages=[{"role": "user", "content": "Hello"}],',
            "    stream=True,",
            ")",
            "for piece in answer:",
            '    print(piece.choices[0].delta.content or "", end="")',
        )
    )
