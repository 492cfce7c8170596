"""Lists as Alibaba Cloud's RPC answers carry them: `{"Instances": {"Instance": [...]}}`. Pure."""

from collections.abc import Mapping
from typing import Any


def wrapped(body: Any, outer: str, inner: str) -> list[Any]:
    """Return the list inside its wrapper: empty when there is none, of one when there is a single entry in its place."""
    wrapper = body.get(outer) if isinstance(body, Mapping) else None
    found = wrapper.get(inner) if isinstance(wrapper, Mapping) else None
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def objects(body: Any, outer: str, inner: str) -> list[dict[str, Any]]:
    """Return the objects of such a list."""
    return [each for each in wrapped(body, outer, inner) if isinstance(each, dict)]
