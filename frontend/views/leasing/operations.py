"""Operations: the list, and one with its steps as they happen."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from fleet.enums import OperationKind, OperationState
from fleet.models import Operation
from fleet.selectors.leasing import operation_list
from frontend.access import PageRequest, page
from frontend.formatting import said_of
from frontend.join_line import expected
from frontend.leasing import operations as reading
from frontend.leasing.offers import number_of
from frontend.leasing.tabs import page_number, rental_tabs, rows_of
from panel.accounts.capabilities import Capability
from panel.core.clock import now


def _line(operation: Operation) -> dict[str, Any]:
    sentence, _next_step = reading.reason_words(operation)
    return {
        "it": operation,
        "name": reading.machine_name(operation),
        "sentence": sentence,
        "seconds": reading.elapsed_seconds(operation, now()),
    }


@page(Capability.FLEET_VIEW)
def operations(request: PageRequest) -> HttpResponse:
    """Show what was asked of providers, the newest first."""
    kind, state = request.GET.get("kind", ""), request.GET.get("state", "")
    kind = kind if kind in OperationKind.values else ""
    state = state if state in {*OperationState.values, "open"} else ""
    found = operation_list(
        account=number_of(request.GET.get("account", "")),
        lease=number_of(request.GET.get("lease", "")),
        kind=[kind] if kind else [],
        state=[state] if state and state != "open" else [],
        is_open=True if state == "open" else None,
    )
    rows = rows_of(found.order_by("-pk"), page_number(request.GET.get("page", "")))
    context = {"list": rows, "lines": [_line(each) for each in rows.rows], "kind": kind, "state": state}
    context |= {"is_active": bool(kind or state or request.GET.get("account") or request.GET.get("lease"))}
    if request.GET.get("part") == "rows":
        return render(request, "operations/rows.html", context)
    context |= {
        "title": _("Operations"),
        "kinds": OperationKind.choices,
        "states": [("open", _("On the way")), *OperationState.choices],
        **rental_tabs("operations"),
    }
    return render(request, "operations/page.html", context)


@page(Capability.FLEET_VIEW)
def operation(request: PageRequest, operation_id: int) -> HttpResponse:
    """Show one operation: how far it is, how long that usually takes, why it failed, what is left."""
    found, at = reading.operation_found(operation_id), now()
    sentence, next_step = reading.reason_words(found)
    context = {
        "operation": found,
        "steps": reading.steps_of(found, at),
        "elapsed": reading.elapsed_seconds(found, at),
        "usual": reading.usual_of(found),
        "sentence": sentence,
        "next_step": next_step,
        "left": reading.what_is_left(found),
        **expected(found.server if found.state == OperationState.SUCCEEDED else None, found.lease),
    }
    if request.GET.get("part") == "status":
        return render(request, "operations/status.html", context)
    context |= {"title": said_of(found.get_kind_display(), reading.machine_name(found)), **rental_tabs("operations")}
    return render(request, "operations/one.html", context)
