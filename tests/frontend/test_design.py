"""The visual system: contrast, themes, shapes, budgets."""

import gzip
import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from fleet.enums import (
    AccountHealth,
    DriftKind,
    DriverState,
    GpuHealth,
    GpuState,
    LeaseState,
    OperationState,
    ServerState,
)
from fleet.providers.base import Stock
from frontend.status import STATE_TONES, TONES, tone_of
from panel.core.enums import Severity
from panel.core.health import CheckStatus

STATIC = Path(__file__).resolve().parents[2] / "frontend" / "static"
TEMPLATES = STATIC.parent / "templates"
TOKENS, DARK = ((STATIC / "css" / name).read_text() for name in ("tokens.css", "tokens-dark.css"))
SHELL_CSS = ("tokens.css", "tokens-dark.css", "base.css", "components.css")
CSS_BUDGET_BYTES = 20_000
TEXT_CONTRAST, MARK_CONTRAST = 4.5, 3.0


def colours(block):
    return dict(re.findall(r"--([\w-]+): (#[0-9A-Fa-f]{6});", block))


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def themes():
    light = colours(TOKENS)
    return {"light": light, "dark": light | colours(DARK)}


def test_the_dark_theme_changes_colours_that_exist_and_nothing_else():
    assert set(re.findall(r"--([\w-]+):", DARK)) <= set(re.findall(r"--([\w-]+):", TOKENS))
    assert {selector.strip() for selector in re.findall(r"^([^\n{/*]+)\{", DARK, re.MULTILINE)} == {":root"}


@pytest.mark.parametrize(
    ("theme", "media"),
    [("auto", "screen and (prefers-color-scheme: dark)"), ("dark", "screen"), ("light", "not all")],
    ids=["auto", "dark", "light"],
)
def test_dark_holds_for_whom_the_theme_says_and_never_on_paper(theme, media):
    page = render_to_string("components/styles.html", {"theme": theme})
    assert re.findall(r'media="([^"]*)"', page) == [media]
    script = (STATIC / "js" / "modules" / "theme.js").read_text()
    assert f'"{media}"' in script  # the switch says the same


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_on_every_surface(theme):
    colour = themes()[theme]
    for text in ("text", "text-2", "text-3", "accent", "danger"):
        for surface in ("bg", "surface", "surface-2"):
            assert contrast(colour[text], colour[surface]) >= TEXT_CONTRAST, (text, surface)
    assert contrast(colour["on-accent"], colour["accent"]) >= TEXT_CONTRAST
    assert contrast(colour["on-danger"], colour["danger"]) >= TEXT_CONTRAST


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("tone", ["ok", "warning", "critical", "progress", "unknown", "silenced"])
def test_a_status_word_is_readable_on_its_tint_and_its_mark_is_seen_on_every_surface(theme, tone):
    colour = themes()[theme]
    assert contrast(colour[f"{tone}-text"], colour[f"{tone}-tint"]) >= TEXT_CONTRAST
    for surface in ("bg", "surface", "surface-2"):
        assert contrast(colour[f"{tone}-mark"], colour[surface]) >= MARK_CONTRAST, surface


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_borders_of_controls_and_lines_of_charts_are_seen(theme):
    colour = themes()[theme]
    for name in ("control", *(f"series-{number}" for number in range(1, 9))):
        assert contrast(colour[name], colour["surface"]) >= MARK_CONTRAST, name


def test_colours_are_those_of_the_design():
    design = STATIC.parents[2] / "shared" / "design" / "ui.md"
    if not design.exists():
        pytest.skip("the design is not beside this checkout: its colours were not compared")
    spec = design.read_text().partition("**Colour**")[2].partition("**Theme.**")[0]
    ours = set(re.findall(r"#[0-9A-F]{6}", TOKENS + DARK))
    assert set(re.findall(r"#[0-9A-F]{6}", spec)) <= ours


def test_a_colour_is_written_in_the_tokens_only():
    allowed = {"#FFFFFF", "#000000"}  # QR codes: scanners want dark on white
    for path in (STATIC / "css").rglob("*.css"):
        if path.name not in {"tokens.css", "tokens-dark.css"}:
            found = set(re.findall(r"(?<![\w&%])#[0-9A-Fa-f]{3,8}\b(?![\w-]*\s*[{,>:.\[])", path.read_text()))
            assert found <= allowed, path.name


def test_every_colour_that_a_style_names_exists():
    names = set(re.findall(r"--([\w-]+):", "".join(p.read_text() for p in (STATIC / "css").rglob("*.css"))))
    for path in (STATIC / "css").rglob("*.css"):
        assert set(re.findall(r"var\(--([\w-]+)[,)]", path.read_text())) <= names, path.name


def test_the_styles_of_any_page_stay_within_the_budget():
    shell = b"".join((STATIC / "css" / name).read_bytes() for name in SHELL_CSS)
    pages = sorted((STATIC / "css" / "pages").glob("*.css")) + sorted((STATIC / "vendor").rglob("*.css"))
    everything = shell + b"".join(path.read_bytes() for path in pages)
    assert len(gzip.compress(everything, 9)) <= CSS_BUDGET_BYTES


@pytest.mark.parametrize(
    "choices",
    [
        ServerState,
        GpuHealth,
        GpuState,
        DriverState,
        Severity,
        CheckStatus,
        LeaseState,
        OperationState,
        AccountHealth,
        DriftKind,
        Stock,
    ],
)
def test_every_state_has_a_shape(choices):
    assert {state: state in STATE_TONES for state in choices.values} == dict.fromkeys(choices.values, True)


def test_a_state_that_nobody_listed_is_unknown_never_fine():
    assert tone_of("brand-new") == "unknown"
    assert set(STATE_TONES.values()) <= set(TONES)


def test_every_tone_has_a_shape_of_its_own_in_the_sprite():
    sprite = (TEMPLATES / "components" / "sprite.html").read_text()
    shapes = dict(re.findall(r'<symbol id="(mark-\w+)"[^>]*>(.*?)</symbol>', sprite))
    assert {f"mark-{tone}" for tone in TONES} <= set(shapes)
    assert len(set(shapes.values())) == len(shapes)
