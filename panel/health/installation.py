"""Checks that one panel alone uses the installation's id, which its machines carry at their providers."""

from collections.abc import Iterable

from django.utils.translation import gettext as _

from fleet.services.installation import strangers_of_our_name
from panel.core.health import Check, CheckStatus
from panel.core.installation import install_id_known, is_copied


def installation_checks() -> Iterable[Check]:
    """Whether this database is a copy of another panel's, and whether somebody else orders under the same id."""
    name, copied, known = _("Installation id"), is_copied(), install_id_known()
    yield Check(
        "installation_copied",
        name,
        CheckStatus.WARNING if copied else CheckStatus.OK,
        _("%(id)s, in a copied database") % {"id": known} if copied else known or _("none yet"),
        _("one panel alone"),
        _(
            "Nothing is ordered until you decide. Is the panel that this database comes from gone? Then run manage.py "
            "installation --keep here. Does it still run? Then run manage.py installation --new-id here."
        )
        if copied
        else "",
        int(copied),
    )
    strangers = strangers_of_our_name()
    yield Check(
        "installation_strangers",
        _("Machines of this id that are not known here"),
        CheckStatus.WARNING if strangers else CheckStatus.OK,
        str(strangers),
        _("none"),
        _(
            "Another panel with the same id orders in an account of this one, or the database was restored from an older "
            "backup. Look at them under Differences; a copied panel takes a new id by manage.py installation --new-id."
        )
        if strangers
        else "",
        strangers,
    )
