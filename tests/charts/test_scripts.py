"""The pages' scripts: their pure parts in Node, their size, what they import."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
STATIC = HERE.parent.parent / "frontend" / "static"
BUDGET_BYTES = 70_000


def scripts() -> list[Path]:
    """Every script of our own and the vendored ones that a page of charts loads."""
    vendored = [STATIC / "vendor" / "uplot" / "uPlot.iife.min.js", STATIC / "vendor" / "htmx" / "htmx.min.js"]
    return sorted((STATIC / "js").rglob("*.js")) + vendored


def test_the_pure_parts_pass_their_tests_in_node() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the scripts' own tests (tests/charts/*.test.mjs) did not run")
    files = [str(path) for path in sorted(HERE.glob("*.test.mjs"))]
    result = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=100, check=False)
    assert files
    assert result.returncode == 0, result.stdout + result.stderr


def test_all_scripts_together_stay_within_the_budget() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in scripts()}
    assert sum(sizes.values()) <= BUDGET_BYTES, sizes


def test_every_import_names_a_file_that_exists() -> None:
    for path in (STATIC / "js").rglob("*.js"):
        for target in re.findall(r'^import [^;]*?from "([^"]+)";', path.read_text(), flags=re.MULTILINE | re.DOTALL):
            assert (path.parent / target).is_file(), f"{path.name} imports {target}"


def test_every_script_of_our_own_is_checked_for_types() -> None:
    unchecked = [path.name for path in (STATIC / "js").rglob("*.js") if not path.read_text().startswith("// @ts-check")]
    assert unchecked == []
