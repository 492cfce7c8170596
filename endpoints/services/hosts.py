"""How servers serve: what people say of them, and emptying one."""

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from endpoints.models import Replica, ServingHost
from endpoints.services.waking import endpoint_wake
from fleet.enums import ServerState
from fleet.models import Server
from fleet.services.telling import assignments_change
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import InvalidInput, NotFound

SETTABLE: Final = (
    "address", "first_port", "last_port", "runtime", "hf_endpoint", "uses_modelscope", "image_prefix", "models_dir",
)  # fmt: skip


def serving_update(*, server_id: int, actor: Actor, **changes: Any) -> ServingHost:
    """Change how a server serves (see ServingHost). Replicas that run keep what they were started with.

    Raises NotFound or InvalidInput.
    """
    unknown = set(changes) - set(SETTABLE)
    if unknown:
        raise InvalidInput(_("There is no such setting: %(names)s") % {"names": ", ".join(sorted(unknown))})
    with transaction.atomic():
        serving = _locked(server_id)
        before = {name: getattr(serving, name) for name in changes}
        for name, value in changes.items():
            setattr(serving, name, value)
        try:
            serving.clean_fields(exclude={field.name for field in ServingHost._meta.fields} - {*SETTABLE})  # noqa: SLF001
            serving.validate_constraints(exclude=["server"])
        except ValidationError as error:
            raise InvalidInput("; ".join(error.messages), field=next(iter(error.message_dict), None)) from None
        serving.save(update_fields=list(changes))
        audit(
            actor=actor, action="serving.update", target=serving.server, target_name=serving.server.name,
            before=before, after=changes,
        )  # fmt: skip
        _wake(server_id)
        assignments_change([server_id])
    return serving


def server_cordon(*, server_id: int, actor: Actor, is_evacuating: bool = False, reason: str = "") -> ServingHost:
    """Place nothing new on a server; with `is_evacuating`, move what is there elsewhere, gently. Raises NotFound."""
    return _cordon(server_id, actor, "server.cordon", is_cordoned=True, is_evacuating=is_evacuating, reason=reason)


def server_uncordon(*, server_id: int, actor: Actor) -> ServingHost:
    """Let a server take replicas again. Raises NotFound."""
    return _cordon(server_id, actor, "server.uncordon", is_cordoned=False, is_evacuating=False, reason="")


def _cordon(
    server_id: int, actor: Actor, action: str, *, is_cordoned: bool, is_evacuating: bool, reason: str
) -> ServingHost:
    with transaction.atomic():
        serving = _locked(server_id)
        serving.is_cordoned, serving.is_evacuating, serving.cordon_reason = is_cordoned, is_evacuating, reason[:200]
        serving.save(update_fields=["is_cordoned", "is_evacuating", "cordon_reason"])
        after = {"is_cordoned": is_cordoned, "is_evacuating": is_evacuating}
        audit(
            actor=actor, action=action, target=serving.server, target_name=serving.server.name,
            after=after, reason=reason,
        )  # fmt: skip
        _wake(server_id)
    return serving


def _locked(server_id: int) -> ServingHost:
    if not Server.objects.filter(pk=server_id).exclude(state=ServerState.RETIRED).exists():
        raise NotFound(_("There is no such server."))
    ServingHost.objects.get_or_create(server_id=server_id)
    return ServingHost.objects.select_related("server").select_for_update(of=("self",)).get(server_id=server_id)


def _wake(server_id: int) -> None:
    here = Replica.objects.filter(server_id=server_id, ended_at=None).values_list("endpoint_id", flat=True)
    endpoint_wake(set(here), at=now())
