"""What people do with cards: let the panel forget one that is gone for good."""

from collections.abc import Collection

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import GpuState
from fleet.models import Gpu, Server
from fleet.services.judging import open_faults, server_judge
from fleet.services.servers import server_locked
from fleet.services.telling import tell_server
from fleet.services.transitions import gpu_title
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, NotFound
from panel.core.events import event_write

# A card that answers would be back with the next report.
FORGETTABLE: frozenset[GpuState] = frozenset({GpuState.MISSING, GpuState.LOST, GpuState.UNKNOWN})


def gpu_forget(*, gpu_id: int, actor: Actor, reason: str = "") -> Gpu:
    """Take one card off the list of its server; see `gpus_forget`. Twice changes nothing. Raises NotFound or Conflict."""
    server_id = Gpu.objects.filter(pk=gpu_id).values_list("server_id", flat=True).first()
    if server_id is None:
        raise NotFound(_("There is no such GPU."))
    gpus_forget(server_id=server_id, gpu_ids=[gpu_id], actor=actor, reason=reason)
    return Gpu.objects.get(pk=gpu_id)


def gpus_forget(*, server_id: int, actor: Actor, gpu_ids: Collection[int] | None = None, reason: str = "") -> list[Gpu]:
    """Take cards off the list of a server: those named, or all that are missing. Their samples and faults stay.

    The card comes back by itself when its server enumerates it again. Raises NotFound, or Conflict for one that answers.
    """
    with transaction.atomic():
        server = server_locked(server_id)
        gpus = list(Gpu.objects.filter(server=server))
        chosen = _chosen(gpus, gpu_ids)
        at = now()
        gone = {gpu.pk for gpu in chosen}
        for gpu in gpus:  # the slices of a card go with it
            if gpu.removed_at is None and (gpu.pk in gone or gpu.parent_id in gone):
                gpu.removed_at = at
        Gpu.objects.filter(pk__in=[gpu.pk for gpu in gpus if gpu.removed_at == at]).update(removed_at=at)
        for gpu in chosen:
            _record(server, gpu, actor, reason)
        if chosen:
            faults = open_faults(server_ids=[server.pk], at=at).get(server.pk, {})
            server_judge(server=server, gpus=gpus, faults=faults, actor=actor, at=at)
            server.save(update_fields=["gpu_health"])
            tell_server(server, gpus=gpus, changed=[gpu for gpu in gpus if gpu.removed_at == at])
    return chosen


def _chosen(gpus: list[Gpu], gpu_ids: Collection[int] | None) -> list[Gpu]:
    if gpu_ids is None:
        return [
            gpu for gpu in gpus if gpu.removed_at is None and gpu.state == GpuState.MISSING and gpu.parent_id is None
        ]
    by_id = {gpu.pk: gpu for gpu in gpus}
    unknown = [gpu_id for gpu_id in gpu_ids if gpu_id not in by_id]
    if unknown:
        raise NotFound(_("There is no such GPU on this server."))
    chosen = [by_id[gpu_id] for gpu_id in dict.fromkeys(gpu_ids) if by_id[gpu_id].removed_at is None]
    for gpu in chosen:
        if GpuState(gpu.state) not in FORGETTABLE:
            raise Conflict(
                _("GPU %(uuid)s still answers, and would be back with the next report.") % {"uuid": gpu.uuid},
                code="gpu_answers",
            )
    return chosen


def _record(server: Server, gpu: Gpu, actor: Actor, reason: str) -> None:
    before = {"uuid": gpu.uuid, "state": str(gpu.state)}
    title = gpu_title(gpu, server.name)
    audit(actor=actor, action="gpu.forget", target=gpu, target_name=title, before=before, reason=reason)
    event_write(
        kind="gpu.forgotten",
        subject_kind="gpu",
        subject_id=gpu.pk,
        subject_name=title,
        server_id=server.pk,
        data={"uuid": gpu.uuid, "by": actor.name},
    )
