"""Letting a machine join: a form, the one line with its token (shown once), and ticks until its GPUs are there."""

import hashlib
import json
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from fleet.agent_package.installer import join_command, mirror_url, panel_url, uninstall_command
from fleet.enums import ServerState
from fleet.models import JoinToken, Lease, Server
from fleet.selectors import join_live, join_token_list
from fleet.services.joining import NewJoinToken, join_token_create, join_token_revoke
from frontend.access import PageRequest, page
from frontend.forms import JoinForm, JoinLineForm, refuse
from frontend.join import join_progress
from frontend.join_line import line_context
from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound

STOP_POLLING: Final = 286  # htmx's own status: swap this answer and ask no more
LOCAL_ADDRESSES: Final = ("127.", "localhost", "[::1]", "0.0.0.0")  # noqa: S104 (looked for, not bound)
COMMON_PROVIDERS: Final = (
    "AutoDL",
    "Alibaba Cloud",
    "Tencent Cloud",
    "Volcano Engine",
    "RunPod",
    "Vast.ai",
    "Lambda",
    "IDC",
)


def join_context(request: PageRequest, *, form: JoinForm | None = None) -> dict[str, Any]:
    """Return what join/form.html needs."""
    known = Server.objects.exclude(provider="").values_list("provider", flat=True).distinct().order_by("provider")[:50]
    url = panel_url(request)
    return {
        "join_form": form or JoinForm(),
        "providers": [*known, *(name for name in COMMON_PROVIDERS if name not in set(known))],
        "mirrors": sorted(settings.PACKAGE_MIRRORS.items()),
        "panel_address": url,
        "is_encrypted": url.startswith("https://"),
        "is_local_address": url.partition("://")[2].startswith(LOCAL_ADDRESSES),
    }


def _open_tokens() -> list[JoinToken]:
    return list(join_token_list(is_usable=True, now=now()).order_by("-id")[:50])


def _form(request: PageRequest, *, form: JoinForm | None = None) -> HttpResponse:
    context = join_context(request, form=form) | {"title": _("Add a server"), "nav": "fleet"}
    status = 400 if form is not None else 200
    waiting = {"tokens": _open_tokens(), "consequences": _take_back_consequences()}
    if request.GET.get("part") == "tokens":
        return render(request, "join/tokens.html", waiting)
    if request.headers.get("HX-Request"):
        context["join_form"].fields["name"].widget.attrs["autofocus"] = True
        # htmx swaps successful answers only; a form with its errors is one
        return render(request, "join/form.html", context)
    return render(request, "join/page.html", context | waiting, status=status)


def _take_back_consequences() -> list[str]:
    return [_("The line that carries it will be refused."), _("Machines that have joined are not concerned.")]


def _command(url: str, token: str, form: JoinLineForm) -> str:
    given = form.cleaned_data
    return join_command(url=url, token=token, mirror=given["mirror"], is_detached=given["way"] == "container")


@never_cache
@page(Capability.JOIN_TOKENS_MANAGE)
def join(request: PageRequest) -> HttpResponse:
    """Show the form; make a token and show its line, in this one answer."""
    if request.method != "POST":
        return _form(request)
    form = JoinForm(request.POST)
    if not form.is_valid():
        return _form(request, form=form)
    given = form.cleaned_data
    try:
        mirror_url(given["mirror"])
        made = join_token_create(
            name=given["name"], provider=given["provider"], region=given["region"], actor=Actor.from_request(request)
        )
    except InvalidInput as error:
        if error.code == "name_taken" and (server := _expected(given["name"])) is not None:
            return _to_server(request, server)
        refuse(form, error)
        return _form(request, form=form)
    return _line(request, made, form)


def _expected(name: str) -> Server | None:
    """Return the server of that name that was ordered and has not joined yet."""
    return Server.objects.filter(name__iexact=name, state=ServerState.PENDING).first()


def _joins_itself(server: Server) -> bool:
    return Lease.objects.filter(server=server, ended_at=None, expects_agent=True).exists()


def _to_server(request: PageRequest, server: Server) -> HttpResponse:
    """Lead from the form of new servers to the line of one that is expected already."""
    if request.headers.get("HX-Request"):
        context = line_context(server, joins_itself=_joins_itself(server)) | {"is_known": True}
        return render(request, "join/server_form.html", context)
    return HttpResponseRedirect(f"{reverse('server-join', args=[server.pk])}?known=1")


@never_cache
@page(Capability.JOIN_TOKENS_MANAGE)
def server_join(request: PageRequest, server_id: int) -> HttpResponse:
    """Let a server join that exists already: make a token for it and show its line, in this one answer."""
    server = Server.objects.filter(pk=server_id, retired_at=None).first()
    if server is None:
        raise NotFound(_("There is no such server, or it was removed."))
    form = JoinLineForm(request.POST or None)
    if form.is_valid():
        try:
            mirror_url(form.cleaned_data["mirror"])
            made = join_token_create(name=server.name, server=server, actor=Actor.from_request(request))
        except InvalidInput as error:
            refuse(form, error)
        else:
            return _line(request, made, form)
    is_fragment = bool(request.headers.get("HX-Request"))
    context = line_context(server, joins_itself=_joins_itself(server), form=form)
    context |= {"title": _("Join %(name)s") % {"name": server.name}, "nav": "fleet"}
    context |= {"is_known": "known" in request.GET}
    status = 400 if form.is_bound and not is_fragment else 200  # htmx swaps successful answers only
    return render(request, "join/server_form.html" if is_fragment else "join/server_page.html", context, status=status)


def _line(request: PageRequest, made: NewJoinToken, form: JoinLineForm) -> HttpResponse:
    """Answer the line of a token just made, with its ticks."""
    url = panel_url(request)
    context = _progress_context(made.row) | {
        "title": _("Join %(name)s") % {"name": made.row.name},
        "nav": "fleet",
        "command": _command(url, made.token, form),
        "uninstall": uninstall_command(url=url),
        "way": form.cleaned_data["way"],
        "is_local_address": join_context(request)["is_local_address"],
        "panel_address": url,
    }
    template = "join/progress.html" if request.headers.get("HX-Request") else "join/progress_page.html"
    response = render(request, template, context)
    response["HX-Trigger"] = "join-token-made"  # a list of tokens on the same page is fetched again
    return response


def _token(token_id: int) -> JoinToken:
    row = join_token_list(now=now()).filter(pk=token_id).first()
    if row is None:
        raise NotFound(_("There is no such join token."))
    return row


def _progress_context(row: JoinToken) -> dict[str, Any]:
    progress = join_progress(join_live(row), created_at=row.created_at, now=now())
    told = [[step.code, step.title, step.state, step.detail, step.hint] for step in progress.steps]
    seen = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
    return {"token": row, "server": row.server if row.used_at else None, "progress": progress, "seen": seen}


@never_cache
@page(Capability.JOIN_TOKENS_MANAGE)
def join_one(request: PageRequest, token_id: int) -> HttpResponse:
    """Show how far the machine of one token has come; its line is not shown again."""
    row = _token(token_id)
    context = _progress_context(row) | {"title": _("Join %(name)s") % {"name": row.name}, "nav": "fleet"}
    return render(request, "join/progress_page.html", context)


@never_cache
@page(Capability.JOIN_TOKENS_MANAGE)
def join_steps(request: PageRequest, token_id: int) -> HttpResponse:
    """Answer the ticks as they stand; nothing (204) when they are what the page shows already."""
    context = _progress_context(_token(token_id))
    is_over = context["progress"].is_over
    if request.GET.get("seen") == context["seen"]:
        # htmx swaps in what comes with the code that ends its polling, and nothing would take the ticks away
        return HttpResponse(status=STOP_POLLING, headers={"HX-Reswap": "none"}) if is_over else HttpResponse(status=204)
    status = STOP_POLLING if is_over else 200
    return render(request, "join/steps.html", context, status=status)


@require_POST
@page(Capability.JOIN_TOKENS_MANAGE)
def join_revoke(request: PageRequest, token_id: int) -> HttpResponse:
    """Take a token back before a machine has used it."""
    row = join_token_revoke(join_token=_token(token_id), actor=Actor.from_request(request))
    messages.success(request, _("The join token for “%(name)s” is taken back.") % {"name": row.name})
    return HttpResponseRedirect(reverse("join"))
