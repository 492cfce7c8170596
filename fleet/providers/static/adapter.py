"""A machine without an API: nothing is asked, nothing is synced, its lease is typed in by hand."""

from typing import ClassVar

from django.utils.translation import gettext_lazy as _

from fleet.providers.base import AccountCheck, Billing, Machine, Provider, StopEffect
from fleet.providers.errors import Refused
from fleet.reasons import Reason


class Static(Provider):
    """Machines of a landlord who is reached by telephone or mail, or that stand in one's own rack."""

    kind: ClassVar[str] = "static"
    label = _("Machine without an API")
    currency: ClassVar[str] = "USD"  # to begin with; the lease that is typed in has its own
    is_synced: ClassVar[bool] = False

    def check(self) -> AccountCheck:
        """See Provider. There is no key, so there is nothing that could be wrong with it."""
        return AccountCheck()

    def machines(self) -> list[Machine]:
        """Refuse: an empty list would say that the machines are gone."""
        raise _no_api()

    def machine(self, external_id: str) -> Machine | None:  # noqa: ARG002 (nobody is asked)
        """Refuse, for the same reason."""
        raise _no_api()

    def stop_effect(self, billing: Billing) -> StopEffect:  # noqa: ARG002 (nothing is known for any)
        """See Provider."""
        return StopEffect(
            saves_compute=None,
            keeps_billing=("everything",),
            note=_("Nothing is known to be saved: there is no API to ask, so the whole price goes on counting."),
        )


def _no_api() -> Refused:
    return Refused("This machine has no API that could be asked.", reason=Reason.NOT_SUPPORTED, permanent=True)
