"""Requests held against a vendor's own specification: path, method, parameters, body.

The specifications are no part of the repository: they lie in ../shared/specs beside it, or not at all. `openapi` then has
nothing to say against any request; one test of each vendor asks `needed` first, which skips it aloud.
"""

import json
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

SPECS = Path(__file__).resolve().parents[3] / "shared" / "specs"
METHODS = {"get", "put", "post", "delete", "patch"}
ROOT = "urn:specification"


def find(name):
    """Return where a specification lies (its name below shared/specs), None when it is not here."""
    path = SPECS / name
    return path if path.exists() else None


def needed(name):
    """Return where a specification lies; skip the test aloud when it is not here."""
    path = find(name)
    if path is None:
        pytest.skip(f"the specification {name} is not beside the repository")
    return path


@lru_cache(maxsize=16)
def openapi(name, repair=None):
    """Return an OpenAPI 3.1 specification to hold requests against; one that allows everything when it is not here.

    repair: a function of the document that mends, in place, what is known to be wrong in it; say in it what and why.
    """
    path = find(name)
    if path is None:
        return Absent()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        document = json.loads(text)
    else:
        import yaml

        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if repair is not None:
        repair(document)
    return OpenApi(document)


class Absent:
    """In the place of a specification that is not here."""

    def problems(self, request):
        """Return no problem: nothing is known."""
        return []

    def part_problems(self, name, value):
        """Return no problem: nothing is known."""
        return []


class OpenApi:
    """One specification. `problems` says what is wrong with a request, in words; an empty list when nothing is."""

    def __init__(self, document):
        self.document = document
        self.servers = [server["url"].rstrip("/") for server in document["servers"]]
        self.registry = Registry().with_resource(ROOT, Resource(document, DRAFT202012))
        # A path without a variable wins over one with: /asks/search is not /asks/{id}.
        self.routes = sorted(
            ((re.compile(_pattern(path)), path) for path in document["paths"]), key=lambda route: "{" in route[1]
        )

    def problems(self, request):
        """Return what the specification does not allow in a request (httpx.Request)."""
        url = str(request.url.copy_with(query=None)).rstrip("/")
        below = next((url[len(server) :] for server in self.servers if url.startswith(f"{server}/")), None)
        if below is None:
            return [f"{url} is at none of the servers {self.servers}"]
        method = request.method.lower()
        at = next(
            (
                (path, match)
                for route, path in self.routes
                if (match := route.fullmatch(below)) and method in self._item(path)
            ),
            None,
        )
        if at is None:
            return [f"{request.method} {below} is no operation"]
        path, match = at
        operation = self._item(path)[method]
        parameters = [
            self._whole(each) for each in [*self._item(path).get("parameters", []), *operation.get("parameters", [])]
        ]
        found = [
            *self._path_problems(parameters, match.groupdict()),
            *self._query_problems(parameters, request),
            *self._header_problems(parameters, request),
            *self._body_problems(path, method, operation, request),
        ]
        return [f"{request.method} {below}: {problem}" for problem in found]

    def part_problems(self, name, value):
        """Return what a part of the specification (by its name) does not allow in a value: for what a fake shows."""
        validator = Draft202012Validator({"$ref": f"{ROOT}#/components/schemas/{name}"}, registry=self.registry)
        return [f"{name} at {error.json_path}: {error.message[:300]}" for error in validator.iter_errors(value)]

    def _item(self, path):
        return {key: value for key, value in self.document["paths"][path].items() if key in METHODS | {"parameters"}}

    def _whole(self, node):
        """Follow a reference inside the document."""
        while "$ref" in node:
            found = self.document
            for step in node["$ref"].removeprefix("#/").split("/"):
                found = found[step.replace("~1", "/").replace("~0", "~")]
            node = found
        return node

    def _path_problems(self, parameters, values):
        for each in parameters:
            if each["in"] == "path":
                yield from self._value_problems(each, [unquote(values[_group(each["name"])])])

    def _query_problems(self, parameters, request):
        known = {each["name"]: each for each in parameters if each["in"] == "query"}
        for name in sorted(set(request.url.params) - set(known)):
            yield f"the parameter {name} is not known"
        for name, each in known.items():
            values = request.url.params.get_list(name)
            if values:
                yield from self._value_problems(each, values)
            elif each.get("required"):
                yield f"the parameter {name} is missing"

    def _header_problems(self, parameters, request):
        for each in parameters:
            if each["in"] == "header" and each.get("required") and each["name"].lower() not in request.headers:
                yield f"the header {each['name']} is missing"

    def _value_problems(self, parameter, values):
        """Check the text of a parameter in each reading that its type allows; one that fits is enough."""
        if "content" in parameter:
            schema, readings = next(iter(parameter["content"].values()))["schema"], _readings(values[0])
        else:
            schema = parameter.get("schema", {})
            is_list = self._whole(schema).get("type") == "array"
            parts = [part for value in values for part in value.split(",")] if is_list else values
            readings = [parts] if is_list else _readings(values[0])
        validator = Draft202012Validator(self._anchored(schema), registry=self.registry)
        if not any(validator.is_valid(reading) for reading in readings):
            yield f"{parameter['name']}={values} does not fit {json.dumps(schema)[:200]}"

    def _body_problems(self, path, method, operation, request):
        content = request.content
        body = self._whole(operation.get("requestBody") or {})
        if not content:
            if body.get("required"):
                yield "the body is missing"
            return
        if not body:
            yield "a body is not expected"
            return
        kind = request.headers.get("content-type", "").partition(";")[0]
        if kind not in body["content"]:
            yield f"the body is {kind}, not one of {sorted(body['content'])}"
            return
        schema = self._anchored(body["content"][kind]["schema"])
        # A member that the schema does not name is a misspelling, also where the schema itself would let it pass.
        strict = {"$schema": Draft202012Validator.META_SCHEMA["$id"], "allOf": [schema], "unevaluatedProperties": False}
        for error in Draft202012Validator(strict, registry=self.registry).iter_errors(json.loads(content)):
            yield f"body at {error.json_path}: {error.message[:300]}"

    def _anchored(self, node):
        """Return a schema whose references are found from anywhere."""
        if isinstance(node, dict):
            return {
                key: f"{ROOT}{value}" if key == "$ref" and str(value).startswith("#") else self._anchored(value)
                for key, value in node.items()
            }
        return [self._anchored(each) for each in node] if isinstance(node, list) else node


def _group(name):
    return re.sub(r"\W", "_", name)


def _pattern(path):
    parts = re.split(r"\{([^}]+)\}", path.rstrip("/"))
    return "".join(f"(?P<{_group(part)}>[^/]+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))


def _readings(text):
    """Return what the text of a parameter may mean: itself, and the JSON value that it spells."""
    try:
        return [text, json.loads(text)]
    except ValueError:
        return [text]
