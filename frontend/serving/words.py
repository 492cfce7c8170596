"""Endpoints, replicas and rollouts in sentences: how they are, why, and what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from endpoints.engines.registry import ENGINES
from endpoints.enums import Phase, ReplicaHealth, ReplicaState, Wanted
from endpoints.models import Endpoint, Replica, Rollout
from endpoints.rollout.progress import Step


@dataclass(frozen=True, slots=True)
class Said:
    """How something is, in a sentence, with what to do about it (empty: nothing)."""

    sentence: str
    next_step: str = ""


# Why a wanted replica is missing (endpoints.rollout.plan), and why an agent gave one up (fleet.agent.orders.ReplicaStatus).
REASONS: Final[Mapping[str, tuple[Promise, Promise | str]]] = {
    "no_free_gpu": (
        gettext_lazy("No server that may take it has a free GPU."),
        gettext_lazy("Add a server, free a card, or let the placement include more servers."),
    ),
    "nowhere_to_move": (
        gettext_lazy("Its server is being emptied, and no other server has a free GPU."),
        gettext_lazy("Add a server or free a card; until then the replica stays where it is."),
    ),
    "retry_later": (
        gettext_lazy("Its replicas failed; the next try waits, longer after each failure."),
        gettext_lazy("Look at the log of the last one. A new revision is tried at once."),
    ),
    "rollout_failed": (
        gettext_lazy("Its first revision never came to answer a request."),
        gettext_lazy("Look at the run below, change what it names and deploy again."),
    ),
    "deadline": (
        gettext_lazy("Its new replicas did not answer within the deadline."),
        gettext_lazy("Look at the log; raise the deadline when the model is just large."),
    ),
    "superseded": (gettext_lazy("Another rollout took its place."), ""),
    "user": (gettext_lazy("Called off by a person."), ""),
    "failed": (gettext_lazy("A replica of it failed."), gettext_lazy("Look at its log.")),
    "pull_failed": (
        gettext_lazy("The image could not be pulled."),
        gettext_lazy("Check its name and version, and the server's image mirror."),
    ),
    "start_limit": (
        gettext_lazy("It did not answer within its start limit."),
        gettext_lazy("Look at the log; raise the start limit when the model is just large."),
    ),
    "crash_loop": (
        gettext_lazy("It ended again and again right after its start."),
        gettext_lazy("The log says why; the next start waits longer each time."),
    ),
    "gate_failed": (
        gettext_lazy("Its go-live test has failed."),
        gettext_lazy("The report of the test says what was not kept. Change that and deploy again."),
    ),
    "gate_held": (
        gettext_lazy("Its go-live test proved nothing, and nobody ran it again in time."),
        gettext_lazy("The report of the test says why. Deploy again."),
    ),
    "gate_not_begun": (
        gettext_lazy("Its go-live test could not begin."),
        gettext_lazy("The detail says why. Change the gate and deploy again."),
    ),
    "exited": (gettext_lazy("The engine ended by itself."), gettext_lazy("The last lines of its log say why.")),
    "out_of_memory": (
        gettext_lazy("The machine's memory ran out, and the kernel ended the engine."),
        gettext_lazy("Choose a machine with more memory, or a smaller model."),
    ),
    "port_in_use": (
        gettext_lazy("Its port is taken by another program."),
        gettext_lazy("Stop what listens there, or give the server another range of ports."),
    ),
    "gpu_missing": (
        gettext_lazy("A GPU that it was given is not there."),
        gettext_lazy("Look at the server's cards: one may have fallen off the bus."),
    ),
    "policy": (
        gettext_lazy("The policy of the machine forbids it."),
        gettext_lazy("Its agent's policy file says what may run there; change it, or place the replica elsewhere."),
    ),
    "no_runtime": (
        gettext_lazy("The server cannot run engines this way."),
        gettext_lazy("Install what is missing there, or choose containers or plain processes accordingly."),
    ),
    "spawn_failed": (
        gettext_lazy("The engine's program could not be started."),
        gettext_lazy("Check that it is installed there under the name of the command."),
    ),
    "check_failed": (
        gettext_lazy("It runs, and does not answer the test request."),
        gettext_lazy("Look at its log; the answer to the test request may name the error."),
    ),
    "server_silent": (
        gettext_lazy("Its server is silent."),
        gettext_lazy("Look at the server. Its replicas are placed elsewhere after the time in the settings."),
    ),
}


def reason_said(reason: str) -> Said:
    """Return the words of a reason; a code that is not listed stays as it is."""
    words = REASONS.get(reason)
    return Said(str(words[0]), str(words[1])) if words is not None else Said(reason)


def phase_said(endpoint: Endpoint, *, ready: int, rollout: Rollout | None = None) -> Said:
    """Return how an endpoint is for its callers. rollout: the open one."""
    desired, phase = endpoint.desired_replicas, Phase(endpoint.phase)
    why = reason_said(endpoint.phase_reason) if endpoint.phase_reason else Said("")
    counted = ngettext(
        "%(ready)s of %(desired)s replica is ready.", "%(ready)s of %(desired)s replicas are ready.", desired
    ) % {"ready": ready, "desired": desired}
    to = rollout.to_revision.number if rollout is not None else "?"
    heads: Mapping[Phase, str] = {
        Phase.DELETING: _("It is being deleted: replicas finish what they work on, then its address answers no more."),
        Phase.FAILED: "",
        Phase.UNAVAILABLE: _("Callers get no answer: none of %(desired)s replicas is ready.") % {"desired": desired},
        Phase.DEGRADED: _("It answers with less than was asked for.") + f" {counted}",
        Phase.ROLLING_OUT: _("Revision %(number)s is being rolled out.") % {"number": to} + f" {counted}",
        Phase.SCALING: _("The number of replicas is changing.") + f" {counted}",
        Phase.SCALED_TO_ZERO: _("No replica is wanted; callers get no answer and no GPU is held."),
        Phase.PAUSED: _("The rollout of revision %(number)s rests.") % {"number": to} + f" {counted}",
        Phase.HEALTHY: _("It answers.") + f" {counted}",
    }
    nexts = {
        Phase.PAUSED: _("Resume it, or call it off."),
        Phase.SCALED_TO_ZERO: _("Set the number of replicas to bring it back."),
    }
    sentence = " ".join(filter(None, (heads[phase], why.sentence)))
    return Said(sentence, why.next_step or nexts.get(phase, ""))


HEALTH_SAID: Final[Mapping[str, Promise]] = {
    ReplicaHealth.STARTING: gettext_lazy("It loads."),
    ReplicaHealth.OK: gettext_lazy("It answers requests."),
    ReplicaHealth.DEGRADED: gettext_lazy("It answers, but slowly, or it calls itself ill."),
    ReplicaHealth.SATURATED: gettext_lazy("It is full: requests wait, and it works on. Add a replica."),
    ReplicaHealth.STALLED: gettext_lazy("Requests are there and no token comes out; it takes no requests now."),
    ReplicaHealth.ASLEEP: gettext_lazy("It gave its memory back and wakes with a request."),
    ReplicaHealth.DOWN: gettext_lazy("It does not run or refuses connections."),
}


def replica_said(replica: Replica) -> Said:
    """Return why a replica is as it is; the engine's own word counts once it runs."""
    if replica.reason:
        said = reason_said(replica.reason)
        return Said(said.sentence, said.next_step)
    if replica.state == ReplicaState.READY and replica.health in HEALTH_SAID:
        return Said(str(HEALTH_SAID[replica.health]))
    if replica.wanted == Wanted.DRAIN and replica.ended_at is None:
        return Said(_("It takes nothing new and finishes what it works on."))
    return Said("")


STEP_TITLES: Final[Mapping[Step, Promise]] = {
    Step.REQUESTED: gettext_lazy("Requested"),
    Step.CAPACITY: gettext_lazy("Capacity found"),
    Step.MACHINE: gettext_lazy("Machine up"),
    Step.IMAGE: gettext_lazy("Image pulled"),
    Step.WEIGHTS: gettext_lazy("Weights downloaded"),
    Step.LOADED: gettext_lazy("Loaded to GPU"),
    Step.WARM_UP: gettext_lazy("Warm-up and graphs"),
    Step.FIRST_200: gettext_lazy("First 200"),
    Step.FIRST_TOKEN: gettext_lazy("First token"),
    Step.ROTATION: gettext_lazy("In rotation"),
}
# Who a step waits for.
STEP_OWNERS: Final[Mapping[Step, Promise]] = {
    Step.REQUESTED: gettext_lazy("panel"),
    Step.CAPACITY: gettext_lazy("free GPUs"),
    Step.MACHINE: gettext_lazy("agent"),
    Step.IMAGE: gettext_lazy("network and registry"),
    Step.WEIGHTS: gettext_lazy("network and model hub"),
    Step.LOADED: gettext_lazy("disk and engine"),
    Step.WARM_UP: gettext_lazy("engine"),
    Step.FIRST_200: gettext_lazy("engine"),
    Step.FIRST_TOKEN: gettext_lazy("engine"),
    Step.ROTATION: gettext_lazy("gateway"),
}


def engine_label(kind: str) -> str:
    """Return an engine's name for people."""
    return ENGINES[kind].label if kind in ENGINES else kind
