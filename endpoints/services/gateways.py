"""Machines that take callers' requests: made, changed, given up; and what their agents say of them."""

from typing import Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from endpoints.enums import GatewayState
from endpoints.models import Gateway
from endpoints.services.traffic import traffic_store
from fleet.agent import orders
from fleet.enums import ServerState
from fleet.models import Server
from fleet.services.agents import AgentIdentity
from fleet.services.cleaning import clean_text
from fleet.services.telling import assignments_change
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound

_SETTABLE: Final = frozenset({"port", "public_url", "certificate_file", "key_file"})


def gateway_create(
    *,
    server_id: int,
    actor: Actor,
    port: int = 8080,
    public_url: str = "",
    certificate_file: str = "",
    key_file: str = "",
) -> Gateway:
    """Have a server's agent run a gateway. Raises NotFound, InvalidInput, or Conflict when it has one."""
    with transaction.atomic():
        server = Server.objects.select_for_update().filter(pk=server_id).exclude(state=ServerState.RETIRED).first()
        if server is None:
            raise NotFound(_("There is no such server."))
        if Gateway.objects.filter(server=server).exists():
            raise Conflict(_("This server is a gateway already."), code="already_a_gateway")
        gateway = Gateway(server=server, created_at=now())
        _set(gateway, port=port, public_url=public_url, certificate_file=certificate_file, key_file=key_file)
        gateway.save()
        audit(actor=actor, action="gateway.create", target=gateway, target_name=server.name, after={"port": port})
        assignments_change([server.pk])
    return gateway


def gateway_update(*, gateway_id: int, actor: Actor, **changes: str | int) -> Gateway:
    """Change port, public_url, certificate_file or key_file. Raises NotFound or InvalidInput."""
    with transaction.atomic():
        gateway = _locked(gateway_id)
        before = {name: getattr(gateway, name) for name in changes}
        _set(gateway, **changes)
        gateway.save(update_fields=list(changes))
        audit(
            actor=actor, action="gateway.update", target=gateway, target_name=gateway.server.name,
            before=before, after=changes,
        )  # fmt: skip
        assignments_change([gateway.server_id])
    return gateway


def gateway_delete(*, gateway_id: int, actor: Actor) -> None:
    """Have a server serve no callers any more; what went through it is forgotten with it. Raises NotFound."""
    with transaction.atomic():
        gateway = _locked(gateway_id)
        audit(actor=actor, action="gateway.delete", target=gateway, target_name=gateway.server.name)
        assignments_change([gateway.server_id])
        gateway.delete()


def _locked(gateway_id: int) -> Gateway:
    gateway = Gateway.objects.select_related("server").select_for_update(of=("self",)).filter(pk=gateway_id).first()
    if gateway is None:
        raise NotFound(_("There is no such gateway."))
    return gateway


def _set(gateway: Gateway, **changes: str | int) -> None:
    for name, value in changes.items():
        setattr(gateway, name, value)
    if not 1 <= gateway.port <= 65_535:
        raise InvalidInput(_("A port is from 1 to 65535."), field="port")
    if bool(gateway.certificate_file) != bool(gateway.key_file):
        raise InvalidInput(_("A certificate and its key belong together: give both files or none."), field="key_file")
    if gateway.public_url and not gateway.public_url.startswith(("http://", "https://")):
        raise InvalidInput(_("The address begins with http:// or https://."), field="public_url")
    try:
        gateway.clean_fields(exclude={field.name for field in Gateway._meta.fields} - _SETTABLE)  # noqa: SLF001 (Django's way)
    except ValidationError as error:
        raise InvalidInput("; ".join(error.messages), field=next(iter(error.message_dict), None)) from None


def gateway_report(*, identity: AgentIdentity, report: orders.TrafficReport) -> None:
    """Take what an agent says of its gateway; a message said twice is stored once. Raises NotFound or InvalidInput."""
    try:
        run_id = UUID(report.run_id)
    except ValueError:
        raise InvalidInput(_("`run_id` is a UUID.")) from None
    with transaction.atomic():
        gateway = Gateway.objects.select_for_update().filter(server_id=identity.server_id).first()
        if gateway is None:
            raise NotFound(_("This server is not a gateway."))
        if gateway.run_id == run_id and report.seq <= gateway.seq:
            return
        gateway.run_id, gateway.seq, gateway.reported_at = run_id, report.seq, now()
        gateway.state = GatewayState(report.state)
        gateway.applied_version = min(max(report.applied_version, 0), 2**62)
        gateway.detail = clean_text(report.detail, 500)
        gateway.data_plane = clean_text(report.data_plane, 100)
        gateway.save(update_fields=["run_id", "seq", "reported_at", "state", "applied_version", "detail", "data_plane"])
        traffic_store(gateway=gateway, report=report)
