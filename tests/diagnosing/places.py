"""A panel whose diagnoses are measured by agents that do as they are told: results made up, everything else the panel's own."""

import random
import uuid

import msgspec

from fleet.agent import wire
from fleet.agent.probes.result import ProbeResult
from fleet.agent.rounds.plan import Found, Plan, RoundFound
from fleet.models import Agent
from fleet.services.agents import assignments_for
from fleet.services.jobs import job_report
from monitoring.diagnosing.following import diagnoses_follow, panel_found
from monitoring.probing.services import probe_create
from panel.core.clock import now
from tests.endpoints.world import Site, deployed, settle
from tests.fleet.factories import OPERATOR

RUN = str(uuid.uuid4())
CHAT = {"kind": "chat", "host": "gateway.example", "port": 8080, "path": "/chat/v1/chat/completions", "model": "m"}


def served(*, replicas=1):
    """An endpoint with ready replicas on a machine of its own, and another machine beside it: (endpoint, host, other)."""
    host, other = Site("gpu-1", cards=2), Site("edge-1", cards=0)
    endpoint = deployed("chat", desired_replicas=replicas)
    settle(sites=[host, other])
    Agent.objects.update(last_seen_at=now())
    return endpoint, host, other


def probe_of(endpoint, **changes):
    return probe_create(
        actor=OPERATOR,
        **{
            "name": "chat", "target": CHAT, "bearer": "fdk_secret", "vantages": ["panel", "agents"], "metric": "ttft",
            "threshold_ms": 200.0, "subject_kind": "endpoint", "subject_id": endpoint.pk, **changes,
        },
    )  # fmt: skip


def told(site):
    """The jobs that a site is told, with their plans."""
    orders = assignments_for(identity=site.identity).jobs
    return [
        (order, msgspec.convert(order.arguments.get("plan"), Plan)) for order in orders if "plan" in order.arguments
    ]


def measured(plan, ttft_ms, *, tcp_ms=1.0, seed=0):
    """What a place finds that always meets the same."""
    drawn = random.Random(f"{seed} {ttft_ms}")

    def result(connection):
        ms = ttft_ms * drawn.lognormvariate(0.0, 0.05)
        return ProbeResult(
            target=plan.target.id, kind=plan.target.kind, vantage="x", connection=connection, scheduled_ms=1, started_ms=1,
            outcome="ok", phase_reached="done", tcp_ms=tcp_ms if connection == "cold" else None, transfer_ms=5.0,
            ttfb_ms=ms, ttft_ms=ms, e2e_ms=ms + 40, total_ms=ms + 41, tpot_ms=2.0, completion_tokens=20, prompt_tokens=96,
            loop_lag_ms=1.0,
        )  # fmt: skip

    rounds = [
        RoundFound(slot=slot, cold=result("cold"), warm=result("warm") if "warm" in plan.target.connections else None)
        for slot in plan.slots
    ]
    return Found(rounds=rounds, agent_version="1")


def say(site, order, state, **fields):
    report = wire.JobReport(RUN, state, **fields)
    return job_report(identity=site.identity, job_id=order.id, report=report).state


def do(site, ttft_ms, **others):
    """Have a site's agent do its jobs."""
    for order, plan in told(site):
        say(site, order, "claimed")
        say(site, order, "succeeded", result=msgspec.to_builtins(measured(plan, ttft_ms, **others)))


def do_panel(report, ttft_ms, plan, **others):
    """Have the panel's prober do its part."""
    return panel_found(report_id=report.pk, found=measured(plan, ttft_ms, **others), percent=100, at=now())


def follow(at=None):
    return diagnoses_follow(at=at or now())
