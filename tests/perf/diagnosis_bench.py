"""Diagnosis: how often each fault that is put into real sockets gets its verdict, of 20 runs; healthy worlds stay healthy.

The real prober measures from one network namespace to another (tests/faults); `FLEETDECK_FAULT_RUNS` changes the number of runs.
"""

import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed

from fleet.simulation.nvml import build_library
from tests.faults.cards import samples
from tests.faults.lab import why_not
from tests.faults.run import run as run_once
from tests.faults.worlds import WORLDS
from tests.perf.harness import Row

RUNS = int(os.environ.get("FLEETDECK_FAULT_RUNS", "20"))
AT_ONCE = int(os.environ.get("FLEETDECK_FAULTS_AT_ONCE", "3"))  # they mostly wait
GOAL = ">= 0.95"


def verdicts(out):
    """Return verdicts by world."""
    library = build_library(out)
    cards = {name: samples(library, out, name=name, **world.cards) for name, world in WORLDS.items() if world.cards}
    found = {name: Counter() for name in WORLDS}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = {
            pool.submit(run_once, name, seed, cards.get(name, [])): name
            for seed in range(1, RUNS + 1)
            for name in WORLDS
        }
        for done in as_completed(asked):
            diagnosis, _away, _near = done.result()
            name = asked[done]
            found[name][str(diagnosis.verdict)] += 1
            if diagnosis.verdict is not WORLDS[name].verdict:
                told = {key: value for key, value in diagnosis.numbers.items() if value is not None}
                print(f"{name}: {diagnosis.verdict} {diagnosis.also} {told}", file=sys.stderr, flush=True)
    return found


def run(out):
    """Return the rows of `python -m tests.perf diagnosis`."""
    why = why_not()
    if why:
        return [Row("diagnosis of injected faults", None, "share", goal=GOAL, note=f"not measured: {why}")]
    folder = out / "faults"
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, counted in verdicts(folder).items():
        wanted = str(WORLDS[name].verdict)
        others = ", ".join(f"{verdict} {count}" for verdict, count in counted.most_common() if verdict != wanted)
        rows.append(Row(f"{name}: {wanted}", counted[wanted] / RUNS, "share", goal=GOAL, note=others))
    return rows
