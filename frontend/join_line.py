"""What pages need to let a server join that exists already: one that was ordered, or whose agent is to be set up anew."""

from typing import Any

from django.conf import settings

from fleet.enums import ServerState
from fleet.models import Lease, Server
from frontend.forms import JoinLineForm


def line_context(
    server: Server | None, *, joins_itself: bool = False, form: JoinLineForm | None = None
) -> dict[str, Any]:
    """Return what join/server.html needs. joins_itself: its provider runs the installer at the first start."""
    return {
        "join_server": server,
        "joins_itself": joins_itself,
        "join_form": form or JoinLineForm(),
        "mirrors": sorted(settings.PACKAGE_MIRRORS.items()),
    }


def expected(server: Server | None, lease: Lease | None) -> dict[str, Any]:
    """Return what join/server.html needs to offer the line of a server that has never joined; of others nothing."""
    is_expected = server is not None and server.state == ServerState.PENDING
    return line_context(server if is_expected else None, joins_itself=lease is not None and lease.expects_agent)
