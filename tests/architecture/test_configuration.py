"""The documentation and the code name the same environment variables, with the same defaults."""

import ast
import re

from panel.up.datadir import BASE_DIR
from tests.architecture.variables import documented_variables, read_variables

# Where the environment is read: the settings; `manage.py up`, which runs before them; the one command that takes a
# password; programs that know nothing of the panel; and the value that a library wants to see there.
READERS = (
    "panel/settings/",
    "panel/up/",
    "panel/accounts/management/commands/ensure_admin.py",
    "fleet/agent/",
    "fleet/simulation/",
    "manage.py",
)


def sources():
    for top in ("panel", "fleet", "monitoring", "endpoints", "frontend"):
        yield from sorted((BASE_DIR / top).rglob("*.py"))


def test_every_variable_that_is_read_is_explained_and_the_reverse():
    assert read_variables() == documented_variables()


def test_the_environment_is_read_in_the_settings_alone():
    touching = re.compile(r"\bos\.(environ|getenv)\b|\benv\.(str|int|bool|float|list|dict|url)\(")
    setting_django_up = re.compile(r'os\.environ\.setdefault\("DJANGO_SETTINGS_MODULE"')
    found = []
    for path in sources():
        name = str(path.relative_to(BASE_DIR))
        if name.startswith(READERS):
            continue
        lines = path.read_text().splitlines()
        if any(touching.search(line) and not setting_django_up.search(line) for line in lines):
            found.append(name)
    assert found == []


def test_defaults_that_are_plain_values_are_documented_as_they_are():
    text = (BASE_DIR / "docs/configuration.md").read_text()
    checked = 0
    for path in sorted((BASE_DIR / "panel/settings").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "env"):
                continue
            name = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            default = next((word.value for word in node.keywords if word.arg == "default"), None)
            if not isinstance(default, ast.Constant) or default.value == "" or name is None:
                continue
            shown = str(default.value).lower() if isinstance(default.value, bool) else str(default.value)
            row = re.search(rf"^\| `{name}` \| `?([^`|]*)`? \|", text, re.MULTILINE)
            assert row, name
            assert row[1].strip() == shown, name
            checked += 1
    assert checked >= 10
