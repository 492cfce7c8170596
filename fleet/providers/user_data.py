"""Start-up scripts as cloud-init takes them. Pure."""

import base64

from django.utils.translation import gettext as _

from fleet.providers.errors import Refused


def user_data(script: str, *, limit_bytes: int) -> str:
    """Return a shell script as user data in base64. Raises Refused when the script has more than `limit_bytes`.

    A script without a first line that names its shell gets one, because cloud-init would take it for something else.
    """
    text = script if script.startswith("#!") else f"#!/bin/sh\n{script}"
    raw = text.encode()
    if len(raw) > limit_bytes:
        raise Refused(
            _("The start-up script has %(size)d bytes; this provider takes %(limit)d at most.")
            % {"size": len(raw), "limit": limit_bytes},
            permanent=True,
        )
    return base64.b64encode(raw).decode()
