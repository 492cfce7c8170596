"""One world, once: built, measured by the real prober, judged by the real tree. `python -m tests.faults.run NAME…` prints it."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from monitoring.diagnosing.assembling import evidence_of, typical_tokens
from monitoring.diagnosis.tree import diagnose
from tests.faults.cards import samples
from tests.faults.lab import ENGINE_PORT, Lab
from tests.faults.worlds import USUAL_TOKENS, WORLDS


def certificate(directory):
    """Return a file with a certificate and its key."""
    from tests.probes.servers import Certificates

    made = Certificates(Path(directory))
    made.server(names=("engine.test",))
    return next(path for path in Path(directory).glob("server-*.pem"))


def run(name, seed, cards=()):
    """Return the diagnosis of one run, and what was measured outside and on the host. cards: readings, see tests.faults.cards."""
    world = WORLDS[name]
    outside, host = world.plans()
    with tempfile.TemporaryDirectory() as directory, Lab(directory, **world.line, seed=seed) as lab:
        build(lab, world, seed)
        away, near, begin = lab.measure(outside, host, meanwhile=_meanwhile(world, lab))
    evidence = evidence_of(
        objective=world.objective, outside={"outside": away}, hosts=[near], begin=begin,
        slot_seconds=world.slot_seconds, typical=typical_tokens([away], USUAL_TOKENS), gpus=cards,
        markers=world.markers(begin),
    )  # fmt: skip
    return diagnose(evidence, seed=seed), away, near


def build(lab, world, seed):
    """Start what the world has."""
    lab.engine(**world.engine, seed=seed)
    if isinstance(world.front, dict):
        front = dict(world.front)
        if "certificate" in front:
            front["certificate"] = str(certificate(lab.directory))
        lab.front(**front)
    elif world.front == "nginx":
        lab.nginx()
    if world.names_ms is not None:
        lab.names(world.names_ms)


def _meanwhile(world, lab):
    if world.is_starved:
        return starve
    return (lambda _pid, begin: calm_down(world, lab, begin)) if world.is_peak else None


def calm_down(world, lab, begin):
    """Have the callers go when the last round is over."""

    def work():
        time.sleep(max(begin + (world.rounds - 0.6) * world.slot_seconds - time.time(), 0))
        url = f"http://127.0.0.1:{ENGINE_PORT}/quiet"
        subprocess.run(lab.within(lab.host, ["curl", "-s", url]), check=True, capture_output=True)

    threading.Thread(target=work, daemon=True).start()


def starve(pid, begin):
    """Stop a prober for 60 ms, again and again, as a machine without time for it does."""

    def work():
        time.sleep(max(begin - time.time(), 0))
        try:
            while True:
                os.killpg(os.getpgid(pid), 0)
                for pause, number in ((0.06, signal.SIGSTOP), (0.06, signal.SIGCONT)):
                    os.kill(pid, number)
                    time.sleep(pause)
        except ProcessLookupError:
            return

    threading.Thread(target=work, daemon=True).start()


def main(names):
    from fleet.simulation.nvml import build_library

    folder = Path("build/faults")
    folder.mkdir(parents=True, exist_ok=True)
    library = build_library(folder)
    for name in names or WORLDS:
        began = time.monotonic()
        world = WORLDS[name]
        cards = samples(library, folder, **world.cards) if world.cards else []
        found, _away, _near = run(name, int(os.environ.get("SEED", "1")), cards)
        mark = "ok " if found.verdict is world.verdict else "BAD"
        took = time.monotonic() - began
        say(f"{mark} {name}: {found.verdict} {found.also} {found.confidence:.2f} {found.level} in {took:.1f} s")
        if mark == "BAD" or os.environ.get("VERBOSE"):
            say("   ", {key: value for key, value in found.numbers.items() if value is not None})
            say("   ", found.alternatives, found.limits)


def say(*words):
    """Write a line at once."""
    print(*words, flush=True)  # noqa: T201  # a tool for people


if __name__ == "__main__":
    main(sys.argv[1:])
