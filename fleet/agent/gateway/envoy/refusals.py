"""Envoy's own answers (full, too fast, nobody there, too large …) in the shape that OpenAI's clients read."""

from typing import Final

from fleet.agent.gateway.envoy.layout import Config
from fleet.agent.gateway.envoy.routing import LUA

# Header that the filter replaces by the length of the queue.
QUEUE_HEADER: Final = "fleetdeck-queue-length"
JSON: Final = "application/json"


def local_replies() -> Config:
    """Return how Envoy words what it answers itself; the first that fits counts."""
    said_by_filter = {
        "filter": {
            "metadata_filter": {
                "matcher": {"filter": "fleetdeck", "path": [{"key": "refusal"}], "value": {"present_match": True}},
                "match_if_key_not_found": False,
            }
        },
        "body_format_override": {"text_format_source": {"inline_string": "%LOCAL_REPLY_BODY%"}, "content_type": JSON},
    }
    full = _flagged(
        ["UO"],
        429,
        _error("This endpoint has as many requests as it takes.", "rate_limit_error", "endpoint_full")
        | {"in_flight": f"%METADATA(ROUTE:{LUA}:limit)%", "queue_length": None},
        {"retry-after": "1", QUEUE_HEADER: "unknown"},
    )
    return {
        "mappers": [
            said_by_filter,
            full,
            # By its status: the flag RL is set only after the words were chosen.
            _coded(
                429,
                _error("This API key is over its requests per minute.", "requests", "requests_per_minute"),
                {"retry-after": "%DYNAMIC_METADATA(fleetdeck:retry_after)%"},
            ),
            _flagged(
                ["UH", "NC"],
                503,
                _error("No replica of this endpoint takes requests now.", "server_error", "no_replica_ready"),
                {"retry-after": "5"},
            ),
            _flagged(
                ["UT", "SI"],
                504,
                _error("No replica answered in time.", "server_error", "replica_timeout"),
                {"retry-after": "5"},
            ),
            _flagged(
                ["UF", "UC", "UR", "LR", "UPE", "URX"],
                503,
                _error("The replicas of this endpoint failed this request.", "server_error", "replica_failed"),
                {"retry-after": "2"},
            ),
            _flagged(
                ["NR"],
                404,
                _error("There is no endpoint at this address.", "invalid_request_error", "unknown_endpoint"),
            ),
            _coded(413, _error("The request's body is too large.", "invalid_request_error", "request_too_large")),
            _coded(431, _error("The request's headers are too large.", "invalid_request_error", "headers_too_large")),
            _as_it_is_below(400),
            _coded(408, _error("The request did not arrive in time.", "invalid_request_error", "request_timeout")),
        ],
        "body_format": {
            "json_format": {
                "error": _error(
                    "The gateway does not take this request: %RESPONSE_CODE_DETAILS%.",
                    "invalid_request_error",
                    "request_refused",
                )
            }
        },
    }


def _error(message: str, kind: str, code: str) -> Config:
    return {"message": message, "type": kind, "param": None, "code": code}


def _flagged(flags: list[str], status: int, error: Config, headers: dict[str, str] | None = None) -> Config:
    return {
        "filter": {"response_flag_filter": {"flags": flags}},
        "status_code": status,
        "headers_to_add": _headers(headers or {}),
        "body_format_override": {"json_format": {"error": error}},
    }


def _coded(status: int, error: Config, headers: dict[str, str] | None = None) -> Config:
    return {
        "filter": _status("EQ", status),
        "headers_to_add": _headers(headers or {}),
        "body_format_override": {"json_format": {"error": error}},
    }


def _as_it_is_below(status: int) -> Config:
    body = {"inline_string": "%LOCAL_REPLY_BODY%"}
    return {"filter": _status("LE", status - 1), "body_format_override": {"text_format_source": body}}


def _status(operator: str, status: int) -> Config:
    value = {"default_value": status, "runtime_key": f"fleetdeck.status_{status}"}
    return {"status_code_filter": {"comparison": {"op": operator, "value": value}}}


def _headers(headers: dict[str, str]) -> list[Config]:
    return [
        {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for key, value in headers.items()
    ]
