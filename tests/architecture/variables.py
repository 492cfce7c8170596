"""Which environment variables the code reads and which the documentation explains."""

import ast
import re
from functools import cache

from panel.up.datadir import BASE_DIR

SOURCES = ("panel", "fleet", "monitoring", "endpoints", "frontend", "deploy")
NAME = re.compile(r"\bFLEETDECK_[A-Z][A-Z_]*[A-Z]\b|\b(?:DATABASE|REDIS|BROKER)_URL\b")
WHOLE = re.compile(rf"(?:{NAME.pattern})")
# Names that look like variables and are none: include guards of C, templates of the installer.
NO_VARIABLES = re.compile(r"FLEETDECK_\w+_H$")


@cache
def documented_variables():
    """Return the names in the tables of docs/configuration.md."""
    text = (BASE_DIR / "docs/configuration.md").read_text()
    return frozenset(re.findall(rf"^\| `({NAME.pattern})`", text, re.MULTILINE))


@cache
def read_variables():
    """Return the names that the code reads: whole string literals in Python, any mention in shell and C."""
    found = set()
    for top in SOURCES:
        for path in sorted((BASE_DIR / top).rglob("*")):
            if path.suffix == ".py":
                found |= _literals(path.read_text())
            elif path.suffix in (".sh", ".c") or (path.is_file() and path.parent.name == "deploy" and not path.suffix):
                found |= set(re.findall(r"\$\{?(FLEETDECK_[A-Z_]+[A-Z])", path.read_text()))
                found |= set(re.findall(r'getenv\("(FLEETDECK_[A-Z_]+[A-Z])"', path.read_text()))
    return frozenset(name for name in found if not NO_VARIABLES.match(name))


def _literals(source):
    """Return the variables that stand as whole string literals, docstrings and sentences left out."""
    return {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and WHOLE.fullmatch(node.value)
    }
