"""How a machine becomes a server of the fleet: join tokens are made and taken back, one is used up by one machine."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from fleet.agent import wire
from fleet.enums import ServerState
from fleet.models import Agent, JoinToken, Server
from fleet.services.cleaning import clean_address, clean_text
from fleet.services.telling import tell_join, tell_server
from fleet.services.transitions import server_transition
from panel.accounts.audit import Actor, audit
from panel.core import tokens
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotAuthenticated
from panel.core.events import event_write

JOIN_TOKEN_LIFETIME: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class NewJoinToken:
    """A join token just made; `token` is shown this once."""

    row: JoinToken
    token: str


def _usable() -> Q:
    return Q(used_at=None, revoked_at=None, expires_at__gt=now())


def _check_name(name: str, server: Server | None) -> str:
    name = clean_text(name, 101)
    if not name:
        raise InvalidInput(_("Give the server a name."), field="name")
    if len(name) > 100:
        raise InvalidInput(_("The name is longer than 100 characters."), field="name")
    taken = Server.objects.filter(name__iexact=name, retired_at=None)
    if server is not None:
        taken = taken.exclude(pk=server.pk)
    if taken.exists():
        raise InvalidInput(_("There is a server of that name already."), code="name_taken", field="name")
    return name


def join_token_create(
    *,
    name: str,
    actor: Actor,
    provider: str = "",
    region: str = "",
    is_simulated: bool = False,
    server: Server | None = None,
    is_for_startup: bool = False,
) -> NewJoinToken:
    """Make a one-time token with which one machine joins under `name` within 24 h.

    server: an existing one that shall be joined again (its agent's present token ends when the new one is used). Lines that
    were made for it before and not used are taken back. is_for_startup: it goes into an ordered machine's start-up script,
    where it stays good beside a line that a person makes.
    Raises InvalidInput for a name that is empty, too long, taken, or promised by another usable token.
    """
    if server is not None:
        name = server.name
    with transaction.atomic():
        name = _check_name(name, server)
        if server is None and JoinToken.objects.filter(_usable(), name__iexact=name).exists():
            raise InvalidInput(
                _("A join token of that name waits to be used. Use it, or take it back first."),
                code="name_promised",
                field="name",
            )
        if server is not None and not is_for_startup:
            _take_back_lines(server, actor)
        issued = tokens.issue(tokens.JOIN_TOKEN)
        at = now()
        row = JoinToken.objects.create(
            name=name,
            prefix=issued.prefix,
            token_hash=issued.token_hash,
            provider=clean_text(provider or (server.provider if server else ""), 64),
            region=clean_text(region or (server.region if server else ""), 64),
            is_simulated=server.is_simulated if server else is_simulated,
            server=server,
            is_for_startup=is_for_startup,
            created_at=at,
            created_by_name=actor.name[:200],
            expires_at=at + JOIN_TOKEN_LIFETIME,
        )
        after = {"name": name, "token_prefix": row.prefix, "rejoins_server": server.pk if server else None}
        audit(actor=actor, action="join_token.create", target=row, after=after)
    return NewJoinToken(row, issued.token)


def _take_back_lines(server: Server, actor: Actor) -> None:
    """Take back the lines that people made for a server and nobody used, in the caller's transaction."""
    for row in JoinToken.objects.select_for_update().filter(_usable(), server=server, is_for_startup=False):
        row.revoked_at = now()
        row.save(update_fields=["revoked_at"])
        audit(actor=actor, action="join_token.revoke", target=row, reason="a newer line was made")
        tell_join(row)


def join_token_revoke(*, join_token: JoinToken, actor: Actor) -> JoinToken:
    """Take a token back. Raises Conflict when a machine has used it already; taking back twice is no error."""
    with transaction.atomic():
        row = JoinToken.objects.select_for_update().get(pk=join_token.pk)
        if row.used_at is not None:
            raise Conflict(
                _("A machine has joined with this token already. Retire the server instead."), code="token_used"
            )
        if row.revoked_at is None:
            row.revoked_at = now()
            row.save(update_fields=["revoked_at"])
            audit(actor=actor, action="join_token.revoke", target=row)
            tell_join(row)
    return row


def _find_token(token: str, rows: QuerySet[JoinToken]) -> JoinToken:
    """Return the row of a token that is neither unknown nor over. Raises NotAuthenticated naming what is wrong."""
    prefix = tokens.parse(token, kind=tokens.JOIN_TOKEN)
    row = rows.filter(prefix=prefix).first() if prefix else None
    if row is None or not tokens.matches(token, row.token_hash):
        raise NotAuthenticated(
            _("The panel does not know this join token. Copy the whole line again."), code="token_unknown"
        )
    if row.revoked_at is not None:
        raise NotAuthenticated(_("This join token was taken back. Make a new one in the panel."), code="token_revoked")
    if row.expires_at <= now():
        raise NotAuthenticated(
            _("This join token is older than 24 hours. Make a new one in the panel."), code="token_expired"
        )
    return row


def _take_token(token: str) -> JoinToken:
    """Return the locked row of a token that may be used now. Raises NotAuthenticated naming what is wrong."""
    row = _find_token(token, JoinToken.objects.select_for_update())
    if row.used_at is not None:
        raise NotAuthenticated(_("This join token was used already. Make a new one in the panel."), code="token_used")
    return row


def _name_taken(name: str) -> Conflict:
    sentence = _("A server named “%(name)s” exists already. Make a new join token with another name.")
    return Conflict(sentence % {"name": name}, code="name_taken")


def _server_for(row: JoinToken, *, address: str | None) -> Server:
    """Return the server that joins: a new one, or the one that the token names."""
    at = now()
    actor = Actor(kind="agent", id=None, name=f"join token {row.prefix}", address=address)
    if row.server_id is not None:
        server = Server.objects.select_for_update().get(pk=row.server_id)
        if Server.objects.filter(name__iexact=server.name, retired_at=None).exclude(pk=server.pk).exists():
            raise _name_taken(server.name)
        if server.state == ServerState.JOINING:
            server.state_changed_at = at
        else:
            reason = "rejoined" if Agent.objects.filter(server=server).exists() else ""
            server_transition(server=server, to=ServerState.JOINING, reason=reason, actor=actor, at=at)
        server.retired_at = None
        server.save(update_fields=["retired_at", "state_changed_at"])
        return server
    server = Server(name=row.name, state=ServerState.JOINING, state_changed_at=at, created_at=at)
    server.provider, server.region, server.is_simulated = row.provider, row.region, row.is_simulated
    try:
        with transaction.atomic():
            server.save()
    except IntegrityError:
        raise _name_taken(row.name) from None
    return server


def _agent_for(server: Server, request: wire.JoinRequest, address: str | None) -> tuple[Agent, str]:
    """Give the server's agent a token of its own; the one before, if any, ends here."""
    issued = tokens.issue(tokens.AGENT_TOKEN)
    agent = Agent.objects.filter(server=server).first() or Agent(server=server)
    agent.token_prefix, agent.token_hash = issued.prefix, issued.token_hash
    agent.version = clean_text(request.agent_version, 32)
    agent.capabilities = [clean_text(name, 32) for name in request.capabilities[:64]]
    agent.joined_at, agent.revoked_at, agent.last_address = now(), None, clean_address(address)
    agent.last_seen_at = agent.clock_skew_seconds = None
    agent.save()
    return agent, issued.token


def join_token_authenticate(*, token: str) -> JoinToken:
    """Return the join that this token stands for, used or not, so that its machine can ask how far it has come.

    Raises NotAuthenticated when it is unknown, taken back, or older than its lifetime.
    """
    return _find_token(token, JoinToken.objects.select_related("server__agent"))


def server_join(*, request: wire.JoinRequest, address: str | None) -> wire.JoinAnswer:
    """Use up a join token: make (or revive) its server, give its agent a token. Raises NotAuthenticated or Conflict."""
    with transaction.atomic():
        row = _take_token(request.token)
        server = _server_for(row, address=address)
        agent, token = _agent_for(server, request, address)
        server.agent = agent
        row.server, row.used_at, row.used_from = server, agent.joined_at, agent.last_address
        row.save(update_fields=["server", "used_at", "used_from"])
        event_write(
            kind="server.joined",
            subject_kind="server",
            subject_id=server.pk,
            subject_name=server.name,
            server_id=server.pk,
            data={"address": address, "hostname": clean_text(request.hostname, 100), "join_token_id": row.pk},
        )
        tell_join(row)
        tell_server(server, gpus=list(server.gpus.all()))
    return wire.JoinAnswer(
        agent_token=token,
        server_id=server.pk,
        server_name=server.name,
        sample_interval_seconds=agent.sample_interval_seconds,
        report_interval_seconds=agent.report_interval_seconds,
    )
