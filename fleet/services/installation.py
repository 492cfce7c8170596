"""What is done about a copied database: which of the two panels goes on under the installation's id, and what the other drops."""

from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from fleet.enums import DriftKind
from fleet.models import Drift, Lease, ProviderAccount
from fleet.reasons import Reason
from fleet.services.creating import never_created
from panel.accounts.audit import Actor, audit
from panel.core.installation import install_id_known, installation_bind
from panel.core.models import Installation


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of an installation's id: before and now; orders dropped unsent, accounts paused."""

    before: str
    name: str
    orders: int = 0
    accounts: int = 0


def installation_keep(*, actor: Actor) -> Taken:
    """Go on under the present id: the database was moved or restored, and the panel that it comes from is no more."""
    return _bind(actor, "installation.keep", is_renamed=False)


def installation_renew(*, actor: Actor) -> Taken:
    """Take a new id, because the panel of the database that this one is a copy of goes on under the old one.

    Orders that were not sent yet are the other panel's and are dropped here. Accounts are paused until somebody has
    decided which of the two panels each belongs to: both see the same machines. Machines ordered before keep their names.
    """
    with transaction.atomic():
        unsent = list(Lease.objects.select_for_update().filter(external_id="", create_sent_at=None, ended_at=None))
        orders = [lease for lease in unsent if lease.sealed_order]
        for lease in orders:
            never_created(lease.pk, Reason.USER, _("It was copied with the database; the other panel carries it out."))
        accounts = ProviderAccount.objects.filter(removed_at=None, is_paused=False).update(is_paused=True)
        taken = _bind(actor, "installation.renew", is_renamed=True)
    return Taken(taken.before, taken.name, len(orders), accounts)


def _bind(actor: Actor, action: str, *, is_renamed: bool) -> Taken:
    with transaction.atomic():
        before, name = installation_bind(is_renamed=is_renamed)
        row = Installation.objects.get(pk=1)
        audit(actor=actor, action=action, target=row, before={"name": before}, after={"name": name})
    return Taken(before, name)


def strangers_of_our_name() -> int:
    """Return how many machines carry a name of this installation at a provider and are none that this database knows."""
    if not (name := install_id_known()):
        return 0
    found = Drift.objects.filter(kind=DriftKind.UNKNOWN_AT_PROVIDER, resolved_at=None)
    return found.filter(name__startswith=f"fleetdeck-{name}-", account__removed_at=None).count()
