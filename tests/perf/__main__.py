"""`python -m tests.perf [NAME…]`: run every benchmark (or those named), print the tables, write build/bench/<name>.json."""

import importlib
import sys
from pathlib import Path

from tests.perf.harness import Row, table, write

OUT = Path("build/bench")


def names() -> list[str]:
    """Return the benchmarks that exist: every module `<name>_bench.py` beside this one."""
    return sorted(path.stem.removesuffix("_bench") for path in Path(__file__).parent.glob("*_bench.py"))


def main(wanted: list[str]) -> None:
    """Run them one after the other, so that none disturbs another."""
    for name in wanted or names():
        print(f"\n== {name}", flush=True)
        rows: list[Row] = importlib.import_module(f"tests.perf.{name}_bench").run(OUT)
        print(table(rows), flush=True)
        write(rows, OUT / f"{name}.json")


if __name__ == "__main__":
    main(sys.argv[1:])
