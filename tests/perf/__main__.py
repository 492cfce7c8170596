"""`python -m tests.perf [NAME…]`: run every benchmark (or those named), print the tables, write build/bench/<name>.json."""

import importlib
import subprocess
import sys
from pathlib import Path

from tests.perf.harness import Row, table, write

OUT = Path("build/bench")


def names() -> list[str]:
    """Return the benchmarks that exist: every module `<name>_bench.py` beside this one."""
    return sorted(path.stem.removesuffix("_bench") for path in Path(__file__).parent.glob("*_bench.py"))


def measure(name: str) -> None:
    """Run one of them here."""
    print(f"\n== {name}", flush=True)
    rows: list[Row] = importlib.import_module(f"tests.perf.{name}_bench").run(OUT)
    print(table(rows), flush=True)
    write(rows, OUT / f"{name}.json")


def main(wanted: list[str]) -> int:
    """Run them one after the other, so that none disturbs another: each in a process of its own, as each sets Django up on
    servers of its own. Return 1 when one of them broke, after the others.
    """
    if len(wanted) == 1:
        measure(wanted[0])
        return 0
    commands = {name: [sys.executable, "-m", "tests.perf", name] for name in wanted or names()}
    broken = [name for name, command in commands.items() if subprocess.run(command, check=False).returncode != 0]
    if broken:
        print(f"\nbench: broken: {' '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
