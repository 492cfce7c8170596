"""English and Simplified Chinese are equals: no string of the pages lacks its translation, and none is a guess."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

ROOT = Path(__file__).resolve().parents[2]
CATALOGUES = ROOT / "frontend" / "locale" / "zh_Hans" / "LC_MESSAGES"
SOURCES = ("panel", "fleet", "monitoring", "endpoints", "frontend", "manage.py", "pyproject.toml")
PLACE = re.compile(r"%\(\w+\)[sd]|%[sd]")


def messages(path):
    """Return every message of a catalogue: (context, English) → message."""
    with path.open("rb") as file:
        return {(message.context, message.id): message for message in read_po(file, locale="zh_Hans") if message.id}


def first(text):
    """Return the singular, or the only form."""
    return text if isinstance(text, str) else text[0]


@pytest.fixture(scope="module", params=["django", "djangojs"])
def catalogue(request):
    return request.param, messages(CATALOGUES / f"{request.param}.po")


def test_every_entry_is_translated_and_none_is_fuzzy(catalogue):
    _, known = catalogue
    assert known
    assert [message.id for message in known.values() if not first(message.string) or message.fuzzy] == []


def test_translations_fill_the_same_places(catalogue):
    _, known = catalogue
    wrong = []
    for message in known.values():
        english = message.id if isinstance(message.id, str) else message.id[-1]
        wanted, got = set(PLACE.findall(english)), set(PLACE.findall(first(message.string)))
        if got - wanted or (isinstance(message.id, str) and wanted != got):
            wrong.append((message.id, message.string))
    assert wrong == []


def test_every_string_in_the_code_is_in_the_catalogue(catalogue, tmp_path):
    if shutil.which("xgettext") is None:
        pytest.skip("gettext is not installed here (apt-get install gettext)")
    domain, known = catalogue
    skip = shutil.ignore_patterns("__pycache__", "vendor", "*.mo", "*.po")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "frontend" / "locale").mkdir(exist_ok=True)
    command = [sys.executable, "manage.py", "makemessages", "--domain", domain, "--locale", "zh_Hans", "--no-wrap"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    found = messages(tmp_path / "frontend" / "locale" / "zh_Hans" / "LC_MESSAGES" / f"{domain}.po")
    assert sorted(str(first(english)) for _, english in set(found) - set(known)) == []
