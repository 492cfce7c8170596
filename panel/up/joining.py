"""The tokens that `manage.py up` makes for its own children: a join token for this machine, an API token for the demo."""

import json
import platform
from pathlib import Path
from typing import Any, Final

from django.db.models import Q

from fleet.enums import ServerState
from fleet.models import JoinToken, Server
from fleet.services.joining import join_token_create, join_token_revoke
from panel.accounts.audit import Actor
from panel.accounts.enums import Role
from panel.accounts.models import User
from panel.accounts.services.tokens import token_authenticate, token_create
from panel.core.clock import now
from panel.up.datadir import read_json, replace_private

ACTOR_NAME: Final = "manage.py up"
DEMO_NAME: Final = "demo fleet"
SILENT: Final = (ServerState.PENDING, ServerState.JOINING, ServerState.NOT_REPORTING, ServerState.UNREACHABLE)


def own_agent_token(record_path: Path, *, has_identity: bool) -> str:
    """Leave a join token for this machine in `record_path` unless it has joined; return what to tell, or nothing.

    has_identity: whether its agent still knows who it is. A machine that somebody retired in the panel stays out.
    """
    record = read_json(record_path)
    row = _token_of(record)
    if row is None or row.server_id is None:
        if row is not None and _is_usable(row) and record.get("token"):
            return ""
        return _leave_token(record_path, server=None)
    server = Server.objects.get(pk=row.server_id)
    if server.retired_at is not None:
        replace_private(record_path, json.dumps({"join_token_id": row.pk, "is_off": True}))
        return (
            f"The server {server.name!r} was retired in the panel, so this machine's agent stays off; "
            f"remove {record_path} to let it join again"
        )
    if record.get("is_joined") and has_identity:
        return ""
    return _leave_token(record_path, server=server)


def _token_of(record: Any) -> JoinToken | None:
    """Return the row of the token in the record; none when there is no record or the database is another one."""
    if not isinstance(record, dict):
        return None
    return JoinToken.objects.filter(pk=int(record.get("join_token_id", 0))).first()


def _is_usable(row: JoinToken) -> bool:
    return row.used_at is None and row.revoked_at is None and row.expires_at > now()


def _leave_token(record_path: Path, *, server: Server | None) -> str:
    name = platform.node() or "panel"
    actor = Actor.system(ACTOR_NAME)
    if server is None:
        name, server = _name_for(name)
    promised = Q(name__iexact=name, used_at=None, revoked_at=None, created_by_name=ACTOR_NAME)
    for row in JoinToken.objects.filter(promised):
        join_token_revoke(join_token=row, actor=actor)
    made = join_token_create(name=name, actor=actor, server=server)
    replace_private(record_path, json.dumps({"join_token_id": made.row.pk, "token": made.token}))
    return f"This machine joins as {made.row.name!r}"


def _name_for(name: str) -> tuple[str, Server | None]:
    """Return the name to join under, and the silent server of that name that this machine was before, if there is one."""
    known = Server.objects.filter(name__iexact=name, retired_at=None).first()
    if known is None or (not known.is_simulated and known.state in SILENT):
        return name, known
    return f"{name} (panel)", None


def demo_token(path: Path) -> None:
    """Leave an API token in `path` with which the simulated fleet asks for join tokens, unless the one there still works."""
    if path.exists() and token_authenticate(token=path.read_text().strip()) is not None:
        return
    owner = User.objects.filter(role=Role.ADMIN, is_active=True).order_by("pk").first()
    if owner is None:
        raise RuntimeError("there is no admin, although one was just made")
    _, token = token_create(actor=Actor.system(ACTOR_NAME), owner=owner, name=DEMO_NAME, scope=Role.OPERATOR)
    replace_private(path, token)
