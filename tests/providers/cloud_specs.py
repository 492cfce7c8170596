"""Requests held against the API metadata that Alibaba Cloud and Tencent Cloud publish, where it is at hand."""

import json
from functools import lru_cache

from tests.providers.spec import find


@lru_cache(maxsize=4)
def metadata(name):
    """Return the metadata of an API (its name below shared/specs), None when it is not here."""
    path = find(name)
    return None if path is None else json.loads(path.read_text(encoding="utf-8"))


def aliyun_problems(name, action, params):
    """Return what the API does not allow in the query of an action; [] for actions that the metadata leaves out."""
    api = (metadata(name) or {"apis": {}})["apis"].get(action)
    if api is None:
        return []
    known = {each["name"]: each["schema"] for each in api["parameters"]}
    found = [f"{action}: {each} is not known" for each in params if _aliyun_schema(known, each) is None]
    found += [
        f"{action}: {each} is missing"
        for each, schema in known.items()
        if schema.get("required") and each not in params
    ]
    for each, value in params.items():
        schema = _aliyun_schema(known, each)
        found += [f"{action}: {each}={value[:60]}: {why}" for why in _aliyun_value(schema or {}, value)]
    return found


def _aliyun_schema(known, name):
    """Return the schema of a parameter: of a plain one, of `List.1`, of `List.1.Member`."""
    head, *rest = name.split(".")
    schema = known.get(name)
    if schema is None and rest and rest[0].isdigit() and known.get(head, {}).get("type") == "array":
        schema = known[head]["items"]
        for member in rest[1:]:
            schema = schema.get("properties", {}).get(member)
            if schema is None:
                return None
    return schema


def _aliyun_value(schema, value):
    if schema.get("enum") and value not in schema["enum"]:
        yield f"not one of {schema['enum']}"
    if schema.get("type") == "integer" and not value.lstrip("-").isdigit():
        yield "no whole number"
    elif schema.get("maximum") and float(value) > float(schema["maximum"]):
        yield f"more than {schema['maximum']}"
    if schema.get("type") == "boolean" and value not in {"true", "false"}:
        yield "neither true nor false"


def tencent_problems(name, action, body):
    """Return what the API does not allow in the body of an action; [] for actions that the metadata leaves out."""
    document = metadata(name)
    if document is None or action not in document["actions"]:
        return []
    objects = document["objects"]
    return [f"{action}: {problem}" for problem in _tencent_object(objects, f"{action}Request", body, action)]


def _tencent_object(objects, kind, body, where):
    known = {member["name"]: member for member in objects[kind]["members"]}
    for name in body:
        if name not in known:
            yield f"{where}.{name} is not known"
    for name, member in known.items():
        if member.get("required") and name not in body:
            yield f"{where}.{name} is missing"
        elif member.get("disabled") and name in body:
            yield f"{where}.{name} is disused"
    for name, value in body.items():
        if name in known:
            yield from _tencent_value(objects, known[name], value, f"{where}.{name}")


_PLAIN = {"string": str, "int": int, "bool": bool, "float": (int, float)}


def _tencent_value(objects, member, value, where):
    if member["type"] == "list":
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for index, each in enumerate(value):
            yield from _tencent_value(
                objects, {"type": _kind(member), "member": member["member"]}, each, f"{where}[{index}]"
            )
    elif member["type"] == "object":
        if isinstance(value, dict):
            yield from _tencent_object(objects, member["member"], value, where)
        else:
            yield f"{where} is no object"
    elif not isinstance(value, _PLAIN[member["type"]]) or (isinstance(value, bool) and member["type"] != "bool"):
        yield f"{where}={value!r} is no {member['type']}"


def _kind(member):
    """Return the type of a list's entries from their name: int64 and uint64 are whole numbers, capitals are objects."""
    name = member["member"]
    if name.startswith(("int", "uint")):
        return "int"
    return name if name in _PLAIN else "object"
