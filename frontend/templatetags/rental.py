"""Filters of the pages about what is rented."""

import json
from typing import Any

from django import template

register = template.Library()


@register.filter(name="json")
def as_json(value: Any) -> str:
    """Return JSON-ready facts as the text of an attribute, for scripts; the template escapes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
