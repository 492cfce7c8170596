"""A simulated libnvidia-ml: C code built on the spot, and the Python that edits what it answers while it runs."""

from fleet.simulation.nvml.build import build_library
from fleet.simulation.nvml.card import Card, Instance, Process
from fleet.simulation.nvml.host import SimulatedHost
from fleet.simulation.nvml.layout import SimulationError

__all__ = ["Card", "Instance", "Process", "SimulatedHost", "SimulationError", "build_library"]
