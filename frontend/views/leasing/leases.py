"""Leases: the list with its CSV, acts on a selection."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.enums import LeaseState, OperationKind
from fleet.selectors.costs import joint_total
from fleet.selectors.leasing import lease_list
from fleet.services.power import lease_act
from frontend.access import PageRequest, page
from frontend.csv_export import csv_response
from frontend.formatting import listed, said_of
from frontend.leasing import leases as reading
from frontend.leasing.lease_page import acts_possible, stop_effect, what_stays
from frontend.leasing.leases import LeaseRow
from frontend.leasing.offers import number_of
from frontend.leasing.order import stop_sentence
from frontend.leasing.tabs import page_number, rental_tabs, rows_of
from frontend.status import tone_of
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import FleetdeckError
from panel.core.money import Money, sums

BULK: Final = {"stop": OperationKind.STOP, "end": OperationKind.TERMINATE, "start": OperationKind.START}
SELECTED: Final = 200
STATE_WORDS: Final = [(state.value, tone_of(state), state.label) for state in LeaseState]


@page(Capability.FLEET_VIEW)
def leases(request: PageRequest) -> HttpResponse:
    """Show what is paid for; filters and order are in the address."""
    wanted, at = reading.read_filter(request.GET.dict()), now()
    found = rows_of(reading.filtered(wanted, at), page_number(request.GET.get("page", "")))
    rates, count, unknown = reading.rate_now(at)
    context = {
        "title": _("Leases"),
        "wanted": wanted,
        "list": found,
        "rows": reading.rows_of(found.rows, at),
        "rates": rates,
        "joint": joint_total(rates, at=at),
        "open_count": count,
        "unknown_count": unknown,
        "state_words": {value: [tone, str(label)] for value, tone, label in STATE_WORDS},
        **reading.choices(),
        **rental_tabs("leases"),
    }
    return render(request, "leases/page.html", context)


@page(Capability.FLEET_VIEW)
def export(request: PageRequest) -> HttpResponse:
    """Answer every lease that the filters let through, ten thousand at most."""
    at = now()
    found = list(reading.filtered(reading.read_filter(request.GET.dict()), at)[: reading.CSV_ROWS])
    return csv_response(
        name=f"fleetdeck-leases-{at:%Y%m%d-%H%M}.csv",
        header=reading.CSV_HEADER,
        rows=(reading.csv_row(row) for row in reading.rows_of(found, at)),
    )


def _selected(request: PageRequest) -> list[LeaseRow]:
    given = request.POST if request.method == "POST" else request.GET
    ids = [pk for text in given.getlist("lease")[:SELECTED] if (pk := number_of(text)) is not None]
    return reading.rows_of(list(lease_list().filter(pk__in=ids).order_by("name", "pk")), now())


def _consequences(rows: Sequence[LeaseRow], kind: OperationKind) -> list[str]:
    if kind == OperationKind.TERMINATE:
        return [
            _("The machines and their disks are deleted; nothing brings them back."),
            *_named((row, what_stays(row.lease.account)) for row in rows),
            _("Each is billed until its provider confirms the end."),
        ]
    if kind == OperationKind.START:
        return [_("Each costs its full price from then on.")]
    return [_("Whatever runs on them ends."), *_stop_sentences(rows)]


def _stop_sentences(rows: Sequence[LeaseRow]) -> list[str]:
    """Return what a stop of each saves."""
    effects = [(row, effect) for row in rows if (effect := stop_effect(row.lease)) is not None]
    return _named((row, [f"{stop_sentence(effect)} {effect.note}"]) for row, effect in effects)


def _named(said: Iterable[tuple[LeaseRow, list[str]]]) -> list[str]:
    """Return sentences about machines, each once: with their names unless it is the same for all of them."""
    names: dict[str, list[str]] = {}
    count = 0
    for row, sentences in said:
        count += 1
        for sentence in sentences:
            names.setdefault(sentence, []).append(row.lease.title)
    return [text if len(those) == count else said_of(listed(those), text) for text, those in names.items()]


@page(Capability.LEASES_MANAGE)
def bulk(request: PageRequest) -> HttpResponse:
    """Show what an act on a selection ends and keeps; a confirmed POST asks for it, one operation for each."""
    name = (request.POST if request.method == "POST" else request.GET).get("act", "")
    kind, rows = BULK.get(name), _selected(request)
    able = [row for row in rows if kind is not None and kind in acts_possible(row.lease)]
    if kind is None or not able:
        messages.error(request, _("That is not possible for any machine of the selection now."))
        return HttpResponseRedirect(reverse("leases"))
    if request.method == "POST" and _is_confirmed(request, kind, able):
        return _act(request, able, kind)
    context: dict[str, Any] = {
        "title": {
            OperationKind.STOP: _("Stop these machines?"),
            OperationKind.TERMINATE: _("End these machines for good?"),
            OperationKind.START: _("Start these machines?"),
        }[kind],
        "act": name,
        "is_end": kind == OperationKind.TERMINATE,
        "rows": able,
        "left_out": [row for row in rows if row not in able],
        "total": sums(money for row in able for money in _rate(row)),
        "unknown_count": sum(row.rate is None for row in able),
        "consequences": _consequences(able, kind),
        "key": uuid.uuid4().hex,
        **rental_tabs("leases"),
    }
    return render(request, "leases/bulk.html", context)


def _rate(row: LeaseRow) -> list[Money]:
    return list(row.rate.values()) if row.rate else []


def _is_confirmed(request: PageRequest, kind: OperationKind, rows: Sequence[LeaseRow]) -> bool:
    """Say whether the act was confirmed; an end needs the number of machines typed."""
    if kind != OperationKind.TERMINATE or request.POST.get("typed_name", "").strip() == str(len(rows)):
        return True
    messages.error(request, _("The number did not match; nothing was ended."))
    return False


def _act(request: PageRequest, rows: Sequence[LeaseRow], kind: OperationKind) -> HttpResponse:
    actor, key, done = Actor.from_request(request), request.POST.get("key", "")[:64], 0
    for row in rows:
        try:
            lease_act(lease_id=row.lease.pk, kind=kind, actor=actor, key=f"{key}-{row.lease.pk}" if key else "")
        except FleetdeckError as error:
            messages.error(request, said_of(row.lease.title, error.message))
        else:
            done += 1
    if done:
        said = ngettext("%(count)s operation has begun.", "%(count)s operations have begun.", done) % {"count": done}
        messages.success(request, said)
    return HttpResponseRedirect(f"{reverse('operations')}?state=open")
