"""The deploy wizard: a new endpoint, or a new revision of one."""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from endpoints.costs import endpoint_costs
from endpoints.engines.base import EngineSpec
from endpoints.engines.registry import ENGINES
from endpoints.forecast import cost_of_next
from endpoints.models import Endpoint, Revision, Rollout
from endpoints.services.endpoints import endpoint_create
from endpoints.services.launching import spec_check
from endpoints.services.rollouts import revision_deploy
from endpoints.sizing.suggest import suggested_arguments
from frontend.access import PageRequest, page, role_of
from frontend.forms import refuse
from frontend.serving.acts import rollout_words
from frontend.serving.costs import change_words, cost_text
from frontend.serving.fitting import demand_of, fields_of, shape_of, sizing_shown
from frontend.serving.listing import endpoint_found
from frontend.serving.revisions import changes_of, words_text
from frontend.serving.tabs import endpoint_tabs, section_tabs
from frontend.serving.wizard import Wizard, spec_of, wizard_of
from frontend.serving.wizard_forms import ARGUMENT, HardwareForm, ReplicasForm, ReviewForm, lines_of
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError, InvalidInput


@page(Capability.ENDPOINTS_MANAGE)
def endpoint_new(request: PageRequest) -> HttpResponse:
    """Deploy a new endpoint, step by step."""
    made = wizard_of(request.GET)
    context = {"title": _("Deploy an endpoint"), **section_tabs("endpoints", role_of(request))}
    return _answer(request, made, None, context)


@page(Capability.ENDPOINTS_MANAGE)
def endpoint_deploy(request: PageRequest, endpoint_id: int) -> HttpResponse:
    """Deploy a new revision of an endpoint; its values are those of the revision named, else of the last one tried."""
    endpoint = endpoint_found(endpoint_id)
    number = request.GET.get("base", "")
    revisions = Revision.objects.filter(endpoint=endpoint)
    named = revisions.filter(number=int(number)).first() if number.isdecimal() and len(number) < 10 else None
    base = named or endpoint.active_revision or revisions.order_by("-number").first()
    made = wizard_of(request.GET, endpoint=endpoint, base=base)
    context = {"title": _("Deploy a revision of %(name)s") % {"name": endpoint.name}, "base": base}
    return _answer(request, made, base, context | endpoint_tabs(endpoint, "", role_of(request)))


def _answer(request: PageRequest, made: Wizard, base: Revision | None, context: dict[str, Any]) -> HttpResponse:
    status = 200
    if made.step == "review":
        form = ReviewForm(request.POST if request.method == "POST" else None, initial=_environment(base))
        if request.method == "POST":
            rollout = _deploy(request, made, form)
            if rollout is not None:
                return HttpResponseRedirect(reverse("endpoint-run", args=[rollout.endpoint_id, rollout.pk]))
            status = 400
        context |= {"form": form, **_review(made, base)}
    else:
        status = 400 if request.method == "POST" else 200
        context |= _step(made)
    context |= {
        "wizard": made,
        "links": made.links(),
        "hidden": made.hidden(),
        "engines": list(ENGINES.items()),
        "template": f"deploy/{made.step}.html",
    }
    return render(request, "deploy/page.html", context, status=status)


def _environment(base: Revision | None) -> dict[str, str]:
    spec = base.spec if base is not None else {}
    names = ("environment", "secret_environment")
    return {name: lines_of(spec.get(name) or {}) for name in names}


def _step(made: Wizard) -> dict[str, Any]:
    form = made.form
    context: dict[str, Any] = {"form": form}
    if isinstance(form, HardwareForm):
        context |= _hardware(made, form)
    if made.step == "arguments" and form is not None and not form.is_bound:
        context["suggested"] = _suggest(made, form)
    return context


def _hardware(made: Wizard, form: HardwareForm) -> dict[str, Any]:
    """Return the verdicts once a shape is there; what was read from a config.json stands in the fields then."""
    if not form.is_bound or not form.is_valid():
        return {}
    shape = shape_of(form)
    demand = demand_of(form, shape) if shape is not None else None
    if shape is None or demand is None:
        return {}
    for name, value in fields_of(shape).items():
        made.data[name] = value
    found = sizing_shown(demand, now())
    shown = HardwareForm({**made.data.dict(), "config": ""})
    return {"form": shown, "sizing": found, "best": found.best, "is_partial": shape.is_partial}


def _suggest(made: Wizard, form: Any) -> bool:
    """Fill in what sizing found where nothing was said; says whether it did."""
    hardware = made.by_step["hardware"]
    assert isinstance(hardware, HardwareForm)  # noqa: S101  # made for that step
    shape = shape_of(hardware)
    demand = demand_of(hardware, shape) if shape is not None else None
    if demand is None:
        return False
    best = sizing_shown(demand, now()).best
    if best is None:
        return False
    arguments = suggested_arguments(str(made.data.get("kind", "")), demand, best)
    found = {ARGUMENT + name: str(value) for name, value in arguments.items() if ARGUMENT + name in form.fields}
    fresh = {name: value for name, value in found.items() if name not in made.given and not made.data.get(name)}
    form.initial.update(fresh)
    return bool(fresh)


def _draft(made: Wizard) -> tuple[Endpoint, Revision]:
    """Return what would be made, unsaved: for looking where it would go."""
    assert made.spec is not None  # noqa: S101  # the arguments step holds
    endpoint = made.endpoint or Endpoint(placement=_placement(made))
    return endpoint, Revision(
        gpus=made.gpus, runtime=made.spec.runtime, engine=made.spec.kind, spec=made.spec.to_json()
    )


def _placement(made: Wizard) -> dict[str, Any]:
    form = made.by_step["replicas"]
    assert isinstance(form, ReplicasForm)  # noqa: S101  # made for that step
    return form.placement


def _review(made: Wizard, base: Revision | None) -> dict[str, Any]:
    """Return what would change, where it would go and what that costs an hour."""
    assert made.spec is not None  # noqa: S101  # the arguments step holds
    endpoint, revision = _draft(made)
    after = {**made.spec.to_json(), "gpus": made.gpus}
    before = {**base.spec, "gpus": base.gpus} if base is not None else {}
    for name in ("environment", "secret_environment"):
        before.pop(name, None)
    at = now()
    count = (
        endpoint.desired_replicas if made.endpoint else int(made.by_step["replicas"].cleaned_data["desired_replicas"])
    )
    cost, room = cost_of_next(endpoint=endpoint, revision=revision, count=count, at=at)
    context: dict[str, Any] = {
        "changes": changes_of(before, after),
        "is_first": base is None,
        "warnings": made.launch.warnings if made.launch is not None else [],
        "command": words_text(made.launch.command) if made.launch is not None else "",
        "count": count,
        "room": room,
        "cost_words": cost_text(cost),
        "is_without_gpu": revision.gpus == 0,
        "name": made.endpoint.name if made.endpoint else made.by_step["replicas"].cleaned_data["name"],
        "spec": made.spec,
    }
    if made.endpoint is not None:
        context["consequences"] = [*rollout_words(endpoint, revision), _cost_change(endpoint, revision, base)]
    return context


def _cost_change(endpoint: Endpoint, revision: Revision, base: Revision | None) -> str:
    before = endpoint_costs(endpoint_ids=[endpoint.pk], at=now())[endpoint.pk]
    if base is None or base.gpus == revision.gpus:
        return change_words(before, before)
    words = {"before": cost_text(before), "gpus": revision.gpus * endpoint.desired_replicas}
    return _("Cost per hour of its GPUs: %(before)s now; afterwards it holds %(gpus)s GPUs.") % words


def _deploy(request: PageRequest, made: Wizard, form: ReviewForm) -> Rollout | None:
    """Deploy it; a refusal is shown at the form, None then."""
    if not form.is_valid():
        return None
    values = {name: form.cleaned_data[name] for name in ("environment", "secret_environment")}
    actor, note = Actor.from_request(request), form.cleaned_data["note"]
    try:
        spec = spec_of(made, environment=values)
        spec_check(spec, gpus=made.gpus)
        if made.endpoint is not None:
            return revision_deploy(
                endpoint_id=made.endpoint.pk, spec=spec, gpus=made.gpus, note=note, actor=actor, gate=form.gate
            )
        return _create(made, spec, form, actor)
    except InvalidInput as error:
        refuse(form, error)
    except FleetdeckError as error:
        form.add_error(None, error.message)
    return None


def _create(made: Wizard, spec: EngineSpec, form: ReviewForm, actor: Actor) -> Rollout:
    given = made.by_step["replicas"].cleaned_data
    settings = {
        "placement": _placement(made),
        "project": given["project"],
        "requires_key": given["requires_key"] == "yes",
    }
    _endpoint, rollout = endpoint_create(
        name=given["name"], spec=spec, gpus=made.gpus, desired_replicas=given["desired_replicas"],
        settings=settings, note=form.cleaned_data["note"], actor=actor, gate=form.gate,
    )  # fmt: skip
    return rollout
