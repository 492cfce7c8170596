"""Filters of the pages about endpoints."""

from collections.abc import Iterable

from django import template

from frontend.serving import words
from frontend.status import tone_of

register = template.Library()


@register.filter
def reason_said(reason: str) -> str:
    """Return the sentence of a reason; nothing for none."""
    return words.reason_said(reason).sentence if reason else ""


@register.filter
def engine_label(kind: str) -> str:
    """Return an engine's name for people."""
    return words.engine_label(kind)


@register.filter
def revision_tone(state: str) -> str:
    """Return the mark of a revision: one that nobody tried is not under way."""
    return "unknown" if state == "new" else tone_of(state)


@register.filter
def rollout_tone(state: str) -> str:
    """Return the mark of a rollout."""
    return tone_of(state)


@register.filter
def settings_text(changes: Iterable[tuple[str, str]]) -> str:
    """Return changed arguments as `name = value`."""
    return ", ".join(f"{name} = {value}" for name, value in changes)
