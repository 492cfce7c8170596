"""Machines as a provider at its worst lists them, for tests of what the panel makes of them."""

from fleet.enums import OperationKind
from fleet.providers.base import Machine, MachineStatus
from fleet.providers.runpod.adapter import RunPod
from fleet.services.power import lease_act
from tests.leasing.conftest import ACTOR, only_lease


def machine(**facts):
    """Return a machine as an adapter would."""
    plain = {"external_id": "pod1", "name": "box", "status": MachineStatus.RUNNING, "raw_status": "RUNNING"}
    return Machine(**{**plain, **facts})


def listing(monkeypatch, *machines):
    """Let the provider list just these."""
    monkeypatch.setattr(RunPod, "machines", lambda _self: list(machines))


def running(rounds, account, vendor):
    """Order a machine and let it run."""
    rounds.order(account)
    rounds.step()
    vendor.advance()
    rounds.run(minutes=0.5)
    return only_lease()


def end(lease):
    """Ask for a lease's end."""
    lease_act(lease_id=lease.pk, kind=OperationKind.TERMINATE, actor=ACTOR)
