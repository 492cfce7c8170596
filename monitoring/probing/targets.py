"""From a probe to what a prober is given, and which probes are whose."""

from typing import Any

import msgspec
from django.utils.translation import gettext as _
from msgspec.structs import replace

from fleet.agent.probes.target import Target, TargetError, check
from monitoring.probing.models import Probe
from monitoring.probing.tables import PANEL
from panel.core.errors import InvalidInput
from panel.core.marks import probe_mark

SET_ELSEWHERE = frozenset({"id", "interval_seconds", "bearer", "run", "mark"})


def vantage_names(server_id: int) -> set[str]:
    """Return the words in `Probe.vantages` that mean this place (0: the panel)."""
    return {"panel"} if server_id == PANEL else {"agents", f"server:{server_id}"}


def target_of(probe: Probe) -> Target:
    """Return what a prober is given. Raises InvalidInput that says what to change."""
    target = target_read(
        probe.target, number=probe.pk or 0, interval_seconds=probe.interval_seconds, bearer=probe.bearer
    )
    if probe.subject_kind and probe.subject_id is not None:
        return replace(target, mark=probe_mark(probe.subject_kind, probe.subject_id))
    return target


def target_read(given: dict[str, Any], *, number: int, interval_seconds: float, bearer: str) -> Target:
    """Return a checked target. Raises InvalidInput that says what to change."""
    wrong = SET_ELSEWHERE & set(given)
    if wrong:
        raise InvalidInput(_("These stand beside the target: %(names)s") % {"names": ", ".join(sorted(wrong))})
    try:
        whole = {**given, "id": number, "interval_seconds": interval_seconds, "bearer": bearer}
        return check(msgspec.convert(whole, Target))
    except (msgspec.ValidationError, TargetError, RecursionError) as error:
        raise InvalidInput(_("The target cannot be probed: %(error)s") % {"error": error}, field="target") from None


def targets_for(server_id: int) -> list[Target]:
    """Return what a place probes (0: the panel). One query."""
    names = vantage_names(server_id)
    probes = Probe.objects.filter(is_enabled=True).order_by("pk")
    return [replace(target_of(probe), run=_run(probe, server_id)) for probe in probes if names & set(probe.vantages)]


def _run(probe: Probe, server_id: int) -> int:
    """Return the number that asks for a probe at once; the panel is asked in another way (`probe_now`)."""
    return 0 if server_id == PANEL else probe.run


def assignments_part(server_id: int) -> dict[str, Any]:
    """Return what a server's agent is told of probes; see fleet.assignments.parts."""
    return {"probes": targets_for(server_id)}
