"""The header by which a caller makes sure that a request which costs money is carried out once."""

from typing import Final

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from panel.core.errors import InvalidInput

HEADER: Final = "Idempotency-Key"
MAX_LENGTH: Final = 128

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    required=False,
    description="Any text of up to 128 characters that is used for this request alone. Sent again with the same body it"
    " answers with the operation that it began; with another body it is refused (409).",
)


def idempotency_key(request: Request) -> str:
    """Return the request's key, "" without one. Raises InvalidInput for one that is too long or not plain text."""
    key = request.headers.get(HEADER, "").strip()
    if len(key) > MAX_LENGTH or not key.isascii() or not (key.isprintable() or not key):
        raise InvalidInput(_("The idempotency key is up to 128 printable ASCII characters."), field=HEADER)
    return key
