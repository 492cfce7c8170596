"""The API's description of itself: complete, without warnings, and the same as the committed file."""

import difflib
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command
from django.urls import reverse

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "openapi.yaml"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "openapi.yaml"
    call_command("spectacular", file=str(path), validate=True, fail_on_warn=True)
    return path.read_text()


@pytest.fixture
def schema(text):
    return yaml.safe_load(text)


def operations(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method} {path}", operation


def test_the_committed_file_is_what_the_code_says(text):
    difference = difflib.unified_diff(
        COMMITTED.read_text().splitlines(), text.splitlines(), "committed", "code", lineterm=""
    )
    assert "\n".join(list(difference)[:40]) == "", "run `make openapi` and commit docs/openapi.yaml"


def test_the_resources_of_the_panel_are_there(schema):
    resources = {path.removeprefix("/api/v1/").partition("/")[0] for path in schema["paths"]}
    assert {
        "servers",
        "gpus",
        "agents",
        "join-tokens",
        "users",
        "tokens",
        "sessions",
        "audit",
        "events",
        "auth",
    } <= resources
    assert "/api/v1/servers/{id}/series/" in schema["paths"]
    assert "/api/v1/gpus/{id}/series/" in schema["paths"]


def test_every_operation_says_what_it_does(schema):
    assert {name for name, operation in operations(schema) if not operation.get("summary")} == set()


def test_every_operation_needs_a_token_or_a_session_but_logging_in(schema):
    free = {name for name, operation in operations(schema) if not operation.get("security")}
    assert free == {"post /api/v1/auth/token/"}


def test_every_operation_describes_its_errors_in_the_one_shape(schema):
    for name, operation in operations(schema):
        for code in ("400", "401", "403", "404", "429"):
            shape = operation["responses"][code]["content"]["application/json"]["schema"]
            assert shape == {"$ref": "#/components/schemas/Error"}, f"{name} {code}"


def test_no_answer_holds_a_secret_but_those_that_show_it_once(schema):
    secret = {"password", "token", "secret", "token_hash", "recovery_codes", "session_key"}
    shown = {
        f"{name}.{field}" for name, component in schema["components"]["schemas"].items()
        if not name.endswith("Request") for field in component.get("properties", {}) if field in secret
    }  # fmt: skip
    assert shown == {
        "NewToken.token",
        "NewJoinToken.token",
        "LogInToken.token",
        "Enrolment.secret",
        "RecoveryCodes.recovery_codes",
    }


@pytest.mark.django_db
def test_the_description_is_served_to_everybody_as_yaml_or_json(client):
    answer = client.get("/api/schema/")
    assert answer.status_code == 200
    assert yaml.safe_load(answer.content)["info"]["title"] == "Fleetdeck API"
    assert client.get("/api/schema/", {"version": "9"}).content == answer.content
    assert client.get("/api/schema/", {"format": "json"}).json()["openapi"].startswith("3.")
    assert client.get("/api/schema/", headers={"Accept": "application/json"}).json()["paths"]


@pytest.mark.django_db
def test_the_documentation_page_has_no_inline_script_or_style(client):
    page = client.get(reverse("api-docs"))
    html = page.content.decode()
    assert page.status_code == 200
    assert "<style" not in html
    assert "style=" not in html
    assert html.count("<script") == html.count("<script src=")
    script = client.get("/api/docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert "/api/schema/" in script.content.decode()
