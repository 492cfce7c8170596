"""What may be done to an endpoint, and what each act stops, keeps and costs: said before it is done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from endpoints.costs import HourlyCost, endpoint_costs
from endpoints.enums import ReplicaState, RolloutState, Wanted
from endpoints.forecast import cost_of_next, cost_of_replicas, usual_start_seconds
from endpoints.models import Endpoint, Replica, Revision, Rollout
from endpoints.services.endpoints import MOST_REPLICAS
from endpoints.services.placing import room_for
from frontend.formatting import duration
from frontend.serving.costs import change_words, difference_words, minus
from panel.core.clock import now
from panel.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Ask:
    """One act before it is confirmed. values: what the form carries; type_name: typed first, "" for what can be undone."""

    name: str
    title: str
    verb: str
    consequences: Sequence[str]
    milder: str = ""
    type_name: str = ""
    is_danger: bool = False
    values: Mapping[str, str] = field(default_factory=dict)


def _open_replicas(endpoint: Endpoint) -> list[Replica]:
    found = Replica.objects.filter(endpoint=endpoint, ended_at=None).select_related("server").order_by("-created_at")
    return list(found)


def _cost(endpoint: Endpoint) -> HourlyCost:
    return endpoint_costs(endpoint_ids=[endpoint.pk], at=now())[endpoint.pk]


def count_of(text: str) -> int:
    """Return the number of replicas that somebody typed. Raises InvalidInput."""
    if not text.strip().isdecimal() or len(text.strip()) > 4 or int(text) > MOST_REPLICAS:
        raise InvalidInput(
            _("The number of replicas is from 0 to %(most)s.") % {"most": MOST_REPLICAS}, field="replicas"
        )
    return int(text)


def _scale(endpoint: Endpoint, given: Mapping[str, str]) -> Ask:
    count, running = count_of(given.get("replicas", "")), _open_replicas(endpoint)
    kept = [each for each in running if each.wanted == Wanted.RUN]
    said, before = [], _cost(endpoint)
    after = before
    if count < len(kept):
        # Those go first that do not answer, then the newest: as endpoints.rollout.plan does.
        leaving = sorted(kept, key=lambda each: (each.state == ReplicaState.READY, -each.created_at.timestamp()))
        leaving = leaving[: len(kept) - count]
        names = ", ".join(f"#{each.pk} ({each.server.name})" for each in leaving)
        said += [
            _("These take nothing new, finish what they work on, then stop: %(names)s.") % {"names": names},
            _kept_words(count),
        ]
        after = minus(before, cost_of_replicas(replica_ids=[each.pk for each in leaving], at=now()))
    elif count > len(kept):
        more, revision = count - len(kept), endpoint.target_revision or endpoint.active_revision
        if revision is not None:
            cost, room = cost_of_next(endpoint=endpoint, revision=revision, count=more, at=now())
            after = before.plus(cost)
            said += [_room_words(more, room), _("What serves now serves on.")]
    else:
        said.append(_("Nothing starts and nothing stops."))
    if difference := difference_words(count - len(kept), before, after):
        said.append(difference)
    said.append(change_words(before, after))
    title = ngettext("Change %(name)s to %(count)s replica?", "Change %(name)s to %(count)s replicas?", count)
    words = {"name": endpoint.name, "count": count}
    values = {"replicas": str(count)}
    if given.get("from") == "list":
        values["from"] = "list"
    return Ask("scale", title % words, _("Change"), said, is_danger=count == 0, values=values)


def _kept_words(count: int) -> str:
    if count == 0:
        return _("Nothing is left then: callers get 503 until it is scaled up again.")
    return ngettext("%(count)s replica serves on.", "%(count)s replicas serve on.", count) % {"count": count}


def _room_words(more: int, room: int) -> str:
    if room >= more:
        return ngettext("%(count)s replica is started.", "%(count)s replicas are started.", more) % {"count": more}
    words = {"more": more, "room": room}
    return _("There is room for %(room)s of %(more)s now; the others wait for a free GPU.") % words


def rollout_words(endpoint: Endpoint, revision: Revision) -> list[str]:
    """Return how a rollout to a revision goes with the GPUs at hand, with the pause that it brings."""
    serving = [
        each for each in _open_replicas(endpoint) if each.state == ReplicaState.READY and each.wanted == Wanted.RUN
    ]
    if not serving:
        return [_("Nothing serves now, so nothing is interrupted.")]
    if room_for(endpoint, revision) > 0:
        return [_("A new replica answers before an old one is let go: callers notice nothing.")]
    usual = usual_start_seconds(engine=revision.engine, model=str(revision.spec.get("model", "")))
    takes = duration(usual) if usual is not None else _("unknown length: none of this kind has started here yet")
    if len(serving) > 1:
        return [
            _("There is no spare GPU: old replicas are let go one at a time, and the new one takes its card."),
            _("Each time one replica less serves for about %(takes)s.") % {"takes": takes},
        ]
    return [
        _("There is no spare GPU: the only replica is let go before its successor starts on its card."),
        _("There will be a pause of about %(takes)s in which callers get 503.") % {"takes": takes},
    ]


def _restart(endpoint: Endpoint, _values: Mapping[str, str]) -> Ask:
    revision = endpoint.active_revision
    said = rollout_words(endpoint, revision) if revision is not None else [_("Nothing serves yet.")]
    cost = _cost(endpoint)
    said = [_("Every replica is started anew, with the same spec, a few at a time."), *said, change_words(cost, cost)]
    return Ask("restart", _("Restart %(name)s?") % {"name": endpoint.name}, _("Restart"), said)


def _rollback(endpoint: Endpoint, values: Mapping[str, str]) -> Ask:
    number = values.get("number", "")
    revision = (
        endpoint.revisions.filter(number=int(number)).first() if number.isdecimal() and len(number) < 10 else None
    )
    if revision is None:
        raise InvalidInput(_("There is no such revision."), field="number")
    cost = _cost(endpoint)
    said = [*rollout_words(endpoint, revision), change_words(cost, cost)]
    words = {"name": endpoint.name, "number": revision.number}
    active = endpoint.active_revision.number if endpoint.active_revision is not None else 0
    is_back = revision.number < active
    title = (
        _("Roll %(name)s back to revision %(number)s?")
        if is_back
        else _("Deploy revision %(number)s of %(name)s again?")
    )
    if revision.failure:
        said = [_("It failed when it was deployed last; unless something else changed it fails again."), *said]
    verb = _("Roll back") if is_back else _("Deploy again")
    return Ask("rollback", title % words, verb, said, values={"number": str(revision.number)})


def _delete(endpoint: Endpoint, _values: Mapping[str, str]) -> Ask:
    running = _open_replicas(endpoint)
    said = [
        ngettext(
            "%(count)s replica finishes what it works on, then stops; nothing new is accepted.",
            "%(count)s replicas finish what they work on, then stop; nothing new is accepted.",
            len(running),
        )
        % {"count": len(running)},
        _("Its address answers no more, and its name is free. Keys stay; other endpoints serve on."),
        change_words(_cost(endpoint), HourlyCost()),
        _("The machines go on costing what they cost: end their leases to save that."),
    ]
    return Ask(
        "delete", _("Delete %(name)s?") % {"name": endpoint.name}, _("Delete endpoint"), said,
        milder=_("Milder: scale it to 0; it keeps its name and its revisions."),
        type_name=endpoint.name, is_danger=True,
    )  # fmt: skip


ACTS: Final[Mapping[str, Callable[[Endpoint, Mapping[str, str]], Ask]]] = {
    "scale": _scale,
    "restart": _restart,
    "rollback": _rollback,
    "delete": _delete,
    "pause": lambda endpoint, _values: _plain(
        endpoint, "pause", _("Pause the rollout of %(name)s?"), _("Pause"),
        [_("Old and new replicas stay as they are and serve on; nothing starts until it is resumed.")],
    ),
    "resume": lambda endpoint, _values: _plain(
        endpoint, "resume", _("Resume the rollout of %(name)s?"), _("Resume"),
        [_("It goes on where it rests; its deadline starts anew.")],
    ),
    "cancel": lambda endpoint, _values: _plain(
        endpoint, "cancel", _("Call off the rollout of %(name)s?"), _("Call off"), _cancel_words(endpoint)
    ),
}  # fmt: skip


def _plain(endpoint: Endpoint, name: str, title: str, verb: str, said: list[str]) -> Ask:
    cost = _cost(endpoint)
    return Ask(name, title % {"name": endpoint.name}, verb, [*said, change_words(cost, cost)])


def _cancel_words(endpoint: Endpoint) -> list[str]:
    if endpoint.active_revision is None:
        return [_("Its replicas stop; nothing has served before, so the endpoint has no replica then.")]
    words = {"number": endpoint.active_revision.number}
    return [
        _("Replicas of the new revision stop once enough of revision %(number)s serve.") % words,
        _("Revision %(number)s serves on.") % words,
    ]


def possible_acts(endpoint: Endpoint, rollout: Rollout | None) -> dict[str, Any]:
    """Return which acts make sense now, for the page's buttons. rollout: the open one."""
    if endpoint.deleting_at is not None:
        return {}
    is_paused = rollout is not None and rollout.state == RolloutState.PAUSED
    return {
        "scale": True,
        "deploy": True,
        "restart": endpoint.active_revision_id is not None and rollout is None,
        "pause": rollout is not None and not is_paused,
        "resume": is_paused,
        "cancel": rollout is not None,
        "delete": True,
    }
