"""Templates: nothing that the content security policy refuses, and components that say how to use them."""

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parents[2] / "frontend" / "templates"
ALL = sorted(TEMPLATES.rglob("*.html"))
JS = TEMPLATES.parent / "static" / "js"


def names(paths):
    return [str(path.relative_to(TEMPLATES)) for path in paths]


def test_there_are_templates():
    assert len(ALL) > 40


@pytest.mark.parametrize("name", names(ALL))
def test_a_template_has_no_inline_style_script_or_handler(name):
    text = (TEMPLATES / name).read_text()
    assert not re.search(r"<style\b", text)
    assert not re.search(r"\sstyle\s*=", text)
    assert not re.search(r"\son[a-z]+\s*=", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert not re.search(r"hx-on|hx-vars|hx-trigger=\"[^\"]*\[|javascript:", text)  # they need eval


@pytest.mark.parametrize("name", names(ALL))
def test_a_template_loads_nothing_from_elsewhere(name):
    text = (TEMPLATES / name).read_text()
    assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", text)


@pytest.mark.parametrize("name", names(sorted((TEMPLATES / "components").glob("*.html"))))
def test_a_component_says_how_to_use_it(name):
    assert re.match(r"(\{% load [\w ]+ %\})?\{% comment %\}", (TEMPLATES / name).read_text())


def test_every_behaviour_that_a_template_names_is_registered_and_exists():
    registered = dict(re.findall(r'(\w+): \(\) => import\("\./(modules/\w+\.js)"\)', (JS / "registry.js").read_text()))
    assert registered
    for path in registered.values():
        assert (JS / path).is_file(), path
    for template in ALL:
        markup = re.sub(r"\{% comment %\}.*?\{% endcomment %\}", "", template.read_text(), flags=re.DOTALL)
        for value in re.findall(r'data-module="([^"]+)"', markup):
            for name in re.sub(r"\{%.*?%\}", " ", value).split():
                assert name in registered, f"{template.name}: {name}"


# Rows that the server rendered and escaped, put into a template element.
FRAGMENTS_OF_THE_SERVER = {"chunks.js"}


@pytest.mark.parametrize("path", sorted(JS.rglob("*.js")), ids=lambda path: path.name)
def test_a_script_makes_no_markup_from_strings(path):
    text = path.read_text()
    if path.name in FRAGMENTS_OF_THE_SERVER:
        text = re.sub(r"\btemplate\.innerHTML = ", "", text)
    assert not re.search(
        r"\.(?:inner|outer)HTML\s*\+?=(?!=)|\b(?:insertAdjacentHTML|document\.write|eval|new Function)\b", text
    )
    assert not re.search(r"setAttribute\(\"style\"", text)  # the content security policy refuses the attribute
