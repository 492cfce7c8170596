"""python -m fleet.agent."""

import sys

from fleet.agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
