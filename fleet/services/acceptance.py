"""Acceptance checks: begun with what is expected written down beside them, so that a report never changes with its lease."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django.utils.translation import gettext as _

from fleet.enums import JobKind
from fleet.leasing.acceptance_lines import Ordered
from fleet.models import Job, Lease
from fleet.providers.gpu_models import gpu_model
from fleet.services.cleaning import clean_text
from fleet.services.jobs import job_create
from panel.accounts.audit import Actor
from panel.core.errors import InvalidInput

TARGET_LENGTH: Final = 300
# Names of a lease's spec that mean the same here.
_SPEC_FIELDS: Final = ("gpu_model", "gpu_count", "gpu_memory_bytes", "cpu_count", "memory_bytes", "disk_bytes")


def acceptance_start(
    *, server_id: int, actor: Actor, expected: Mapping[str, Any] | None = None, target: str = ""
) -> Job:
    """Ask a server's agent to measure its machine, to be compared with its lease and with what was typed in.

    expected: fields of Ordered. target: `host`, `host:port` or an http(s) address to measure the way to, empty for none.
    Raises NotFound, InvalidInput, or Conflict.
    """
    typed = ordered_of(expected or {})
    lease = Lease.objects.select_related("server").filter(server_id=server_id, ended_at=None).first()
    context: dict[str, Any] = {
        "typed": msgspec.to_builtins(typed),
        "lease": msgspec.to_builtins(_of_lease(lease)),
        "lease_id": lease.pk if lease else None,
        "lease_name": lease.title if lease else "",
        "landlord": (lease.landlord if lease else "")[:100],
    }
    arguments = {"target": _target(target)} if target.strip() else {}
    return job_create(server_id=server_id, kind=JobKind.ACCEPTANCE, actor=actor, arguments=arguments, context=context)


def ordered_of(fields: Mapping[str, Any]) -> Ordered:
    """Return what was typed in, without what was left empty. Raises InvalidInput, with the field."""
    given = {name: value for name, value in fields.items() if value is not None and value != ""}
    unknown = set(given) - set(Ordered.__struct_fields__)
    if unknown:
        raise InvalidInput(_("Nothing is known as %(name)s.") % {"name": ", ".join(sorted(unknown))})
    for name, value in given.items():
        given[name] = clean_text(value, 64) if isinstance(value, str) else value
        try:
            msgspec.convert({name: given[name]}, Ordered)
        except msgspec.ValidationError as error:
            raise InvalidInput(_("This cannot be expected: %(error)s") % {"error": error}, field=name) from None
    if given.get("gpu_model") and gpu_model(given["gpu_model"]) is None:
        raise InvalidInput(_("No such GPU model is known. Write it as its maker does: H100 80GB."), field="gpu_model")
    return msgspec.convert(given, Ordered)


def _of_lease(lease: Lease | None) -> Ordered:
    """Return what a lease says; one field that makes no sense does not cost the others."""
    if lease is None:
        return Ordered()
    found: dict[str, Any] = {}
    for name in _SPEC_FIELDS:
        value = lease.spec.get(name)
        try:
            msgspec.convert({name: value}, Ordered)
        except msgspec.ValidationError:
            continue
        if value is not None and value != "":
            found[name] = value
    return msgspec.convert(found, Ordered)


def _target(target: str) -> str:
    target = target.strip()
    is_url = target.startswith(("http://", "https://"))
    if len(target) > TARGET_LENGTH or any(sign in target for sign in " \t\r\n@") or ("://" in target and not is_url):
        raise InvalidInput(
            _("Name a host, host:port, or an address that begins with https:// or http://."), field="target"
        )
    return clean_text(target, TARGET_LENGTH)
