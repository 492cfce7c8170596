"""`python -m fleet.simulation.engines.agent …`: the agent as it is, but for the engines of its machine, which are simulated."""

import sys

from fleet.agent.cli import main
from fleet.agent.engines import runtimes
from fleet.simulation.engines.runtimes import SimulatedContainers, SimulatedProcesses

if __name__ == "__main__":
    runtimes.MAKERS.update({"process": SimulatedProcesses, "container": SimulatedContainers})
    sys.exit(main(sys.argv[1:]))
