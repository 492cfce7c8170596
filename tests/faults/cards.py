"""Readings of simulated cards, taken by the agent's own NVML path, as a diagnosis sees them."""

import msgspec

from fleet.agent.faults.ledger import FaultLedger
from fleet.agent.nvml.card import ReadOptions
from fleet.agent.nvml.driver import DriverWatch
from fleet.simulation.cards import H100
from fleet.simulation.nvml import SimulatedHost
from monitoring.diagnosing.cards import sample_of
from tests.nvml import reading


def samples(library, directory, *, name="card", rounds=12, **readings):
    """Return so many readings of one card on which the given ones are set. Not for several threads at once."""
    host = SimulatedHost.create(directory / f"{name}.nvml")
    card = host.add_card(H100)
    card.set(**readings)
    with reading(library, host):
        watch = DriverWatch(ReadOptions(describe=lambda _pid: None, has_host_pids=True), FaultLedger(hold_seconds=0.0))
        try:
            return [_sample(one) for _ in range(rounds) for one in watch.read() if one.sample is not None]
        finally:
            watch.close()


def _sample(one):
    told = msgspec.structs.asdict(one.sample)
    watts = told["power_milliwatts"]
    told["power_watts"] = None if watts is None else watts / 1000
    facts = one.facts
    limit = None if facts is None else facts.power_limit_milliwatts
    default = None if facts is None else facts.power_limit_default_milliwatts
    return sample_of(
        told,
        enforced_limit_watts=None if limit is None else limit / 1000,
        default_limit_watts=None if default is None else default / 1000,
    )
