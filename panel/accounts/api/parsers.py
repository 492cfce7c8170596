"""The one body that the API accepts: JSON, bounded in size and depth. Uploads are refused."""

import json
from collections.abc import Mapping
from typing import IO, Any, Final, NoReturn

from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from panel.core.errors import TooLarge

MAX_BODY_BYTES: Final = 1_048_576
MAX_DEPTH: Final = 20


def _refuse_constant(name: str) -> NoReturn:
    raise ParseError(_("%(name)s is not JSON.") % {"name": name})


def _check(value: Any, depth: int) -> None:
    """Refuse what is nested too deep, and text that the database cannot hold (NUL, lone surrogates)."""
    if depth > MAX_DEPTH:
        raise ParseError(_("The body is nested deeper than %(depth)s levels.") % {"depth": MAX_DEPTH})
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise ParseError(_("Text must not hold NUL or half of a surrogate pair."))
    elif isinstance(value, dict):
        for key, item in value.items():
            _check(key, depth + 1)
            _check(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth + 1)


def parse_json(body: bytes) -> Any:
    """Return the decoded body. Raises ParseError (400) for what is no JSON or over a bound."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ParseError(_("The body is not JSON: %(error)s") % {"error": error}) from error
    _check(value, 0)
    return value


class BoundedJSONParser(JSONParser):
    """JSON of at most 1 MiB and 20 levels."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002 (the framework's signature)
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002 (the same)
    ) -> Any:
        """Read and decode the body. Raises TooLarge (413) or ParseError (400)."""
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(_("The body is larger than %(limit)s bytes.") % {"limit": MAX_BODY_BYTES})
        return parse_json(body)
