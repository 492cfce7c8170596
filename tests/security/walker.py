"""Every address of the panel that Django answers, found by walking its routes: nothing new escapes the tests of access."""

import re
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("get", "post", "put", "patch", "delete")
SAMPLES = {"int": "1", "str": "1", "slug": "x", "uuid": "00000000-0000-4000-8000-000000000000", "path": "x"}


@dataclass(frozen=True)
class Address:
    """One route. view: what answers; actions: method → action of a viewset; methods: those that the view has at all."""

    path: str
    name: str
    view: object
    actions: tuple[tuple[str, str], ...]
    methods: tuple[str, ...]

    @property
    def is_api(self):
        return hasattr(self.view, "cls")

    def __str__(self):
        return f"/{self.path}"


def concrete(route):
    """Return the path with a sample in the place of every parameter."""
    route = re.sub(r"\(\?P<\w+>[^)]*\)", "1", route)  # a regular expression of the REST framework's router
    route = re.sub(r"<(?:(\w+):)?\w+>", lambda match: SAMPLES[match[1] or "str"], route)
    return route.replace("^", "").replace("\\Z", "").replace("$", "").replace(".*", "nowhere").replace("\\", "")


def _methods(callback):
    actions = getattr(callback, "actions", None)
    if actions:
        return tuple(method for method in METHODS if method in actions)
    view_class = getattr(callback, "cls", None) or getattr(callback, "view_class", None)
    if view_class is not None:
        return tuple(method for method in METHODS if hasattr(view_class, method))
    return METHODS


def walk(patterns=None, prefix=""):
    """Yield every Address, in the order of the routes."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            callback = pattern.callback
            actions = tuple((getattr(callback, "actions", None) or {}).items())
            yield Address(concrete(route), pattern.name or "", callback, actions, _methods(callback))


def addresses():
    """Return every address once."""
    return list({address.path: address for address in walk()}.values())
