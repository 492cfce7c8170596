"""Rules that hold for every file of the repository."""

import re
import subprocess

import pytest

from panel.up.datadir import BASE_DIR

LONGEST_MODULE = 400
LONGEST_TEST_MODULE = 500  # many small functions, read one at a time
# Names that would tie the repository to one machine or one package index. Put together here, so that this file is clean.
INDEXES = (
    "py" + "pi.org/simple",
    "files.python" + "hosted.org",
    "registry.npm" + "js.org",
    "--index" + "-url http",
    "--extra-index" + "-url",
)
MACHINE = re.compile(r"(?<![\w.-])/(?:work|root|home/[a-z]+)/(?!\.)\w")
TEXT = {
    ".py",
    ".toml",
    ".txt",
    ".md",
    ".yml",
    ".yaml",
    ".sh",
    ".js",
    ".mjs",
    ".css",
    ".html",
    ".json",
    ".c",
    ".h",
    ".po",
    "",
}


def tracked():
    """Return the files that git knows; all of them in an unpacked archive."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=BASE_DIR, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout: there is no list of the repository's files")
    return [BASE_DIR / name for name in done.stdout.split("\0") if name and (BASE_DIR / name).is_file()]


def texts():
    for path in tracked():
        if path.suffix in TEXT and "vendor" not in path.parts:
            yield path, path.read_text(errors="replace")


def test_no_file_names_a_package_index():
    found = [f"{path.relative_to(BASE_DIR)}: {index}" for path, text in texts() for index in INDEXES if index in text]
    assert found == []


def test_no_file_names_a_folder_of_one_machine():
    found = [
        f"{path.relative_to(BASE_DIR)}:{number}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE.search(line)
    ]
    assert found == []


def test_no_module_grows_beyond_what_one_can_read():
    lengths = {
        path.relative_to(BASE_DIR): len(text.splitlines())
        for path, text in texts()
        if path.suffix in {".py", ".js"} and "migrations" not in path.parts
    }
    long = {
        str(path): length
        for path, length in lengths.items()
        if length > (LONGEST_TEST_MODULE if path.parts[0] == "tests" else LONGEST_MODULE)
    }
    assert long == {}


def test_every_module_says_in_its_first_lines_what_lives_there():
    silent = [
        str(path.relative_to(BASE_DIR))
        for path, text in texts()
        if path.suffix == ".py"
        and text.strip()
        and "migrations" not in path.parts
        and not re.match(r'(#!.*\n)?(#.*\n)*\s*r?"""', text)
    ]
    assert silent == []


def test_locks_pin_every_package_by_hash():
    for name in ("base", "dev", "agent"):
        text = (BASE_DIR / "requirements" / f"{name}.txt").read_text()
        entries = re.findall(r"^[a-z0-9][^\s=]*==\S+(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        assert entries
        assert all("--hash=sha256:" in entry for entry in entries)


def pins(name):
    text = (BASE_DIR / "requirements" / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", text, re.MULTILINE))


def test_what_is_tested_is_what_runs():
    base, dev = pins("base"), pins("dev")
    assert {name: dev.get(name) for name in base} == base


def test_the_locks_know_every_package_that_the_project_asks_for():
    import tomllib

    project = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]
    asked = {"base": project["dependencies"], "dev": project["optional-dependencies"]["dev"]}
    for name, requirements in asked.items():
        names = {re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower() for requirement in requirements}
        assert names <= set(pins(name)), name


def test_every_target_of_the_makefile_is_explained_and_runs_what_exists():
    text = (BASE_DIR / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))
    explained = set(re.findall(r"^([a-z][a-z-]*):.*## \S", text, re.MULTILINE))
    assert targets == explained
    phony = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())
    assert phony == targets
    for script in re.findall(r"\bscripts/[a-z.-]+", text):
        assert (BASE_DIR / script).exists(), script
    assert "exec make test" in (BASE_DIR / ".ci/run").read_text()


def test_continuous_integration_and_scripts_can_be_run():
    for name in (
        ".ci/run",
        "scripts/venv",
        "scripts/lint",
        "scripts/lock",
        "scripts/system-packages",
        "deploy/agent-entrypoint",
    ):
        assert (BASE_DIR / name).stat().st_mode & 0o111, name


def test_panel_and_agent_are_of_one_version():
    from fleet.agent import __version__
    from panel.settings.environment import PROJECT_VERSION

    assert __version__ == PROJECT_VERSION
