"""Filters of the pages about what is rented."""

import json
from typing import Any

from django import template

from frontend.leasing.accounts import kind_label

register = template.Library()


@register.filter(name="json")
def as_json(value: Any) -> str:
    """Return JSON-ready facts as the text of an attribute, for scripts; the template escapes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@register.filter
def provider_name(key: str) -> str:
    """Return a provider's name for its key ("simulated" → "Simulated provider"); what a person typed stays as it is."""
    return kind_label(key)
