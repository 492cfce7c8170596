"""Forms held against the request trees of UCloud's SDK: the action, its parameters, their types.

The trees lie in ../shared/specs or not at all, like the other specifications (see spec.py). They lag behind the vendor's
documentation: LATER names what that has and they lack.
"""

import json
import re
from functools import lru_cache
from urllib.parse import parse_qsl

from tests.providers.spec import find

NAME = "compshare/ucompshare.schemas.json"
COMMON = {"Action", "PublicKey", "Signature"}
# Source: compshare.cn/docs/gpus/instance, the pages of the two actions.
LATER = {
    "StopCompShareInstance": {"Force": "Bool"},
    "TerminateCompShareInstance": {"ReleaseUDisk": "Bool"},
}
TYPES = {"Str": r".+", "Int": r"-?\d+", "Bool": r"true|false", "Float": r"-?\d+(\.\d+)?"}


@lru_cache(maxsize=1)
def _trees():
    path = find(NAME)
    return None if path is None else json.loads(path.read_text(encoding="utf-8"))


def problems(request):
    """Return what the SDK's request tree does not allow in a form; [] when the trees are not here."""
    trees = _trees()
    if trees is None:
        return []
    form = dict(parse_qsl(request.content.decode(), keep_blank_values=True))
    action = form.get("Action", "")
    if action not in trees:
        return [f"{action} is no action"]
    known = {**trees[action]["request"], **LATER.get(action, {})}
    given = {key: value for key, value in form.items() if key not in COMMON}
    return [f"{action}: {problem}" for problem in _problems(known, given)]


def _problems(known, given):
    for name, value in given.items():
        kind = _kind(known, name.split("."))
        if kind is None:
            yield f"{name} is not known"
        elif not re.fullmatch(TYPES[kind.split()[0]], value):
            yield f"{name}={value} is no {kind}"
    for name, kind in known.items():
        if isinstance(kind, str) and kind.endswith("REQUIRED") and name not in given:
            yield f"{name} is missing"


def _kind(tree, steps):
    """Follow a flattened name (Disks.0.Size) into the tree; None where it leads nowhere."""
    found = tree
    for step in steps:
        if isinstance(found, list):
            found = found[0] if step.isdigit() else None
        elif isinstance(found, dict):
            found = found.get(step)
        else:
            return None
        if found is None:
            return None
    return found if isinstance(found, str) else None
