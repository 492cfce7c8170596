"""What holds requests against a specification finds what is wrong with them."""

import httpx
import pytest

from tests.providers.spec import OpenApi

SPEC = OpenApi(
    {
        "servers": [{"url": "https://api.example/v1/"}],
        "paths": {
            "/things": {
                "get": {
                    "parameters": [
                        {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 25}},
                        {"name": "kind", "in": "query", "required": True, "schema": {"enum": ["a", "b"]}},
                    ]
                },
                "post": {
                    "requestBody": {
                        "required": True,
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                    }
                },
            },
            "/things/{id}": {"delete": {"parameters": [{"$ref": "#/components/parameters/Id"}]}},
            "/things/search": {"post": {}},
        },
        "components": {
            "parameters": {"Id": {"name": "id", "in": "path", "schema": {"type": "integer"}}},
            "schemas": {
                "Thing": {
                    "allOf": [{"$ref": "#/components/schemas/Named"}, {"properties": {"size": {"type": "integer"}}}]
                },
                "Named": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            },
        },
    }
)


def problems(method, path, **options):
    return SPEC.problems(httpx.Request(method, f"https://api.example/v1{path}", **options))


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("GET", "/things", {"params": {"kind": "a", "limit": "25"}}),
        ("POST", "/things", {"json": {"name": "one", "size": 3}}),
        ("DELETE", "/things/7", {}),
        ("POST", "/things/search/", {}),
    ],
    ids=["query", "body", "path", "longest path"],
)
def test_a_request_as_specified_has_no_problem(method, path, options):
    assert problems(method, path, **options) == []


@pytest.mark.parametrize(
    ("method", "path", "options", "words"),
    [
        ("GET", "/things", {}, "kind is missing"),
        ("GET", "/things", {"params": {"kind": "c"}}, "does not fit"),
        ("GET", "/things", {"params": {"kind": "a", "limit": "26"}}, "does not fit"),
        ("GET", "/things", {"params": {"kind": "a", "limits": "1"}}, "limits is not known"),
        ("POST", "/things", {}, "body is missing"),
        ("POST", "/things", {"json": {"size": 3}}, "'name' is a required property"),
        ("POST", "/things", {"json": {"name": "one", "size": "3"}}, "is not of type 'integer'"),
        ("POST", "/things", {"json": {"name": "one", "sise": 3}}, "'sise' was unexpected"),
        ("POST", "/things", {"data": {"name": "one"}}, "not one of"),
        ("POST", "/things/search", {"json": {}}, "not expected"),
        ("DELETE", "/things/seven", {}, "does not fit"),
        ("PUT", "/things/7", {}, "no operation"),
    ],
    ids=str,
)
def test_a_request_that_is_not_as_specified_is_found(method, path, options, words):
    assert any(words in problem for problem in problems(method, path, **options))


def test_a_request_to_another_server_is_found():
    assert "none of the servers" in SPEC.problems(httpx.Request("GET", "https://api.example.org/v1/things"))[0]
