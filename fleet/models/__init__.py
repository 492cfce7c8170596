"""The fleet's tables: machines that report, what is billed for them, calls to providers and commands for agents."""

from fleet.models.jobs import Job
from fleet.models.leasing import (
    BilledInterval,
    Drift,
    ExchangeRate,
    Lease,
    LeasePrice,
    Offer,
    ProviderAccount,
)
from fleet.models.machines import Agent, AgentStream, FaultSighting, Gpu, GpuFault, JoinToken, Server
from fleet.models.operations import Operation
from fleet.models.simulated import SimulatedMachine

__all__ = [
    "Agent",
    "AgentStream",
    "BilledInterval",
    "Drift",
    "ExchangeRate",
    "FaultSighting",
    "Gpu",
    "GpuFault",
    "Job",
    "JoinToken",
    "Lease",
    "LeasePrice",
    "Offer",
    "Operation",
    "ProviderAccount",
    "Server",
    "SimulatedMachine",
]
