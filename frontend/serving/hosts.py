"""How a server serves, for its page: what its agent can run, mirrors, replicas there, cordon."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from endpoints.enums import Wanted
from endpoints.models import Gateway, Replica
from endpoints.selectors import replica_list
from endpoints.services.placing import serving_of
from fleet.models import Server
from frontend.serving.detail import replica_rows


def server_serving(server: Server) -> dict[str, Any]:
    """Return what a server's page shows of its serving. Four queries."""
    serving = serving_of(Server.objects.select_related("serving").get(pk=server.pk))
    replicas = replica_rows(list(replica_list(server=server.pk, is_open=True)))
    return {
        "serving": serving,
        "serving_replicas": replicas,
        "serving_gateway": Gateway.objects.filter(server=server).first(),
        "runtimes": sorted(serving.runtimes.items()),
        "unusable": sorted(serving.unusable.items()),
    }


def cordon_words(server: Server, *, is_evacuating: bool) -> list[str]:
    """Return what a cordon stops and keeps. One query."""
    here = list(Replica.objects.filter(server=server, ended_at=None, wanted=Wanted.RUN).select_related("endpoint"))
    names = ", ".join(sorted({each.endpoint.name for each in here})) or "—"
    words = {"count": len(here), "names": names}
    said = [_("No new replica is placed on it.")]
    if not here:
        return [*said, _("No replica runs there now.")]
    if is_evacuating:
        said += [
            ngettext(
                "%(count)s replica moves away, of: %(names)s.",
                "%(count)s replicas move away, of: %(names)s.",
                len(here),
            )
            % words,
            _("Each stays until its successor elsewhere answers; without a free GPU elsewhere it stays where it is."),
        ]
    else:
        said.append(
            ngettext("%(count)s replica stays, of: %(names)s.", "%(count)s replicas stay, of: %(names)s.", len(here))
            % words
        )
    said.append(_("The machine goes on costing what it costs."))
    return said
