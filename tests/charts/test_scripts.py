"""The pages' scripts: their pure parts in Node, what browsers get of them, and what that weighs."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from frontend.lean import uncommented, without_comments

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STATIC = ROOT / "frontend" / "static"
OURS = sorted((STATIC / "js").rglob("*.js"))
BUDGET_BYTES = 70_000
IMPORT = re.compile(r'^(?:import|export) [^;]*?from "([^"]+)";', re.MULTILINE | re.DOTALL)
# What the heaviest page, a server's, has in its data-module attributes.
SERVER_PAGE = ("charts", "dialog", "drop", "livepart", "livestate", "palette", "rail", "theme", "toasts", "typename")


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: the scripts' own tests (tests/charts/*.test.mjs) did not run")
    return found


def run_tests(files: list[Path], cwd: Path) -> None:
    result = subprocess.run(
        [node(), "--test", *map(str, files)], cwd=cwd, capture_output=True, text=True, timeout=100, check=False
    )
    assert files
    assert result.returncode == 0, result.stdout + result.stderr


def parse_all(files: list[Path]) -> None:
    """Let Node parse each file as a module, in one process."""
    program = """
        const vm = require("node:vm"), fs = require("node:fs");
        for (const file of process.argv.slice(1)) new vm.SourceTextModule(fs.readFileSync(file, "utf8"), { identifier: file });
    """
    command = [node(), "--no-warnings", "--experimental-vm-modules", "-e", program, *map(str, files)]
    parsed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert parsed.returncode == 0, parsed.stderr


def loaded(path: Path, seen: set[Path]) -> set[Path]:
    """The script and everything that it imports at once."""
    if path not in seen:
        seen.add(path)
        for target in IMPORT.findall(path.read_text()):
            loaded((path.parent / target).resolve(), seen)
    return seen


def strings_of(code: str) -> list[str]:
    """The strings of a script, in their order."""
    return re.findall(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`[^`\n]*`""", code)


def test_the_pure_parts_pass_their_tests_in_node() -> None:
    run_tests(sorted(HERE.glob("*.test.mjs")), HERE)


def test_the_scripts_that_browsers_get_pass_them_too(tmp_path: Path) -> None:
    for path in STATIC.rglob("*.js"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        is_ours = path.is_relative_to(STATIC / "js")
        target.write_text(without_comments(path.read_text()) if is_ours else path.read_text())
    shutil.copy(STATIC / "js" / "package.json", tmp_path / "frontend" / "static" / "js")
    copied = shutil.copytree(HERE, tmp_path / "tests" / "charts", ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    run_tests(sorted(copied.glob("*.test.mjs")), tmp_path)
    parse_all(sorted((tmp_path / "frontend" / "static" / "js").rglob("*.js")))


def test_only_comments_indentation_and_needless_blanks_are_left_out() -> None:
    head = "// @ts-check\n/**\n * What it is.\n */\nexport function f(a) {\n  // why\n"
    code = head + '  return "// no comment" + /** @type {any} */ (a); // kept\n}\n'
    assert without_comments(code) == 'export function f(a){return "// no comment"+(a); // kept\n}\n'


def test_a_comment_behind_code_never_swallows_the_line_after_it() -> None:
    code = "a(); // see b(\nc(); // one,\nd = e;\nif (a && b) {\n  f();\n}\n"
    assert without_comments(code) == "a(); // see b(\nc(); // one,\nd=e;if(a&&b){f();}\n"


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_string_of_ours_spans_lines_or_looks_like_a_comment(path: Path) -> None:
    code = without_comments(path.read_text())
    assert all(line.count("`") % 2 == 0 for line in code.splitlines()), "a template string over several lines"
    assert not [text for text in strings_of(code) if "/*" in text]
    assert not re.search(r"`[^`\n]*\$\{[^}`\n]*`", code), "a template string within another"
    assert strings_of(code) == strings_of(uncommented(path.read_text())), "a string is not as it was written"


def test_the_heaviest_page_stays_within_the_budget() -> None:
    scripts = loaded(STATIC / "js" / "app.js", set())
    for name in SERVER_PAGE:
        loaded(STATIC / "js" / "modules" / f"{name}.js", scripts)
    sizes = {path: len(gzip.compress(without_comments(path.read_text()).encode(), 9)) for path in scripts}
    for path in (STATIC / "vendor" / "uplot" / "uPlot.iife.min.js", STATIC / "vendor" / "htmx" / "htmx.min.js"):
        sizes[path] = len(gzip.compress(path.read_bytes(), 9))
    assert sum(sizes.values()) <= BUDGET_BYTES, (sum(sizes.values()), sizes)


def test_every_import_names_a_file_that_exists() -> None:
    for path in OURS:
        for target in IMPORT.findall(path.read_text()):
            assert (path.parent / target).is_file(), f"{path.name} imports {target}"


def test_every_script_of_our_own_is_checked_for_types() -> None:
    assert [path.name for path in OURS if not path.read_text().startswith("// @ts-check")] == []
