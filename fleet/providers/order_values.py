"""Start-up scripts as machines take them at their first start. Pure."""

import base64

from django.utils.translation import gettext as _

from fleet.providers.errors import Refused
from fleet.providers.reading import whole


def script_text(script: str, *, limit_bytes: int) -> str:
    """Return a shell script as it is sent in plain text. Raises Refused when it has more than `limit_bytes`.

    A script without a first line that names its shell gets one, because cloud-init would take it for something else.
    """
    text = script if script.startswith("#!") else f"#!/bin/sh\n{script}"
    size = len(text.encode())
    if size > limit_bytes:
        raise Refused(
            _("The start-up script has %(size)d bytes; this provider takes %(limit)d at most.")
            % {"size": size, "limit": limit_bytes},
            permanent=True,
        )
    return text


def user_data(script: str, *, limit_bytes: int) -> str:
    """Return a shell script as user data in base64. Raises Refused when the script has more than `limit_bytes`."""
    return base64.b64encode(script_text(script, limit_bytes=limit_bytes).encode()).decode()


def whole_text(value: str) -> str:
    """Return what a person typed for a whole number of 0 or more, as text. Raises Refused for anything else."""
    number = whole(value)
    if number is None or number < 0:
        raise Refused(_("“%(value)s” is not a whole number.") % {"value": value[:20]}, permanent=True)
    return str(number)
