"""Static files as they are collected: hashed names, rewritten imports, compressed."""

import re
from pathlib import Path

import pytest
from django.core.management import call_command

from frontend.storage import StaticFiles

JS = Path(__file__).resolve().parents[2] / "frontend" / "static" / "js"


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """Our own static files, collected as `make up` does."""
    from django.test import override_settings

    root = tmp_path_factory.mktemp("static")
    storages = {"staticfiles": {"BACKEND": "frontend.storage.StaticFiles"}}
    apps = ["django.contrib.staticfiles"]
    with override_settings(STATIC_ROOT=root, STORAGES=storages, INSTALLED_APPS=apps):
        call_command("collectstatic", interactive=False, verbosity=0)
        storage = StaticFiles(location=root)
    return root, storage


def test_every_import_of_a_script_leads_to_a_file_with_a_hash(collected):
    root, storage = collected
    checked = 0
    for path in JS.rglob("*.js"):
        name = storage.stored_name(str(path.relative_to(JS.parent)))
        served = root / name
        for target in re.findall(r'(?:from|import)\s*\(?"(\.[^"]+)"', served.read_text()):
            assert re.search(r"\.[0-9a-f]{12}\.js$", target), f"{name} imports {target}"
            assert (served.parent / target).is_file(), f"{name} imports {target}"
            checked += 1
    assert checked > 20


def test_what_a_page_loads_is_compressed(collected):
    root, storage = collected
    for name in ("css/components.css", "js/app.js", "vendor/htmx/htmx.min.js"):
        served = root / storage.stored_name(name)
        assert served.with_name(served.name + ".br").is_file()
        assert served.with_name(served.name + ".gz").is_file()


def test_a_name_that_was_never_collected_is_no_error(collected):
    _root, storage = collected
    assert storage.stored_name("js/never-written.js") == "js/never-written.js"


def test_scripts_do_not_import_each_other_in_a_circle():
    graph = {}
    for path in JS.rglob("*.js"):
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        graph[path] = [(path.parent / t).resolve() for t in re.findall(r'(?:from|import)\s*\(?\s*"(\.[^"]+)"', code)]
    done, open_ = set(), []

    def visit(path):
        assert path not in open_, [step.name for step in (*open_, path)]
        if path in done:
            return
        open_.append(path)
        for target in graph[path]:
            visit(target)
        open_.pop()
        done.add(path)

    for path in graph:
        visit(path)
    assert done == set(graph)
