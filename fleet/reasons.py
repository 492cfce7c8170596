"""Why something is as it is: one list of typed reasons, each with a sentence and a next step for people."""

from dataclasses import dataclass
from typing import Final

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Reason(models.TextChoices):
    """A typed reason of a state, a refusal or a failure; the value is stored and stands in the API."""

    NONE = "", _("None")
    NO_OFFER = "no_offer", _("No offer")
    NO_CAPACITY = "no_capacity", _("No capacity")
    NO_QUOTA = "no_quota", _("Quota used up")
    NO_BALANCE = "no_balance", _("Balance used up")
    PRICE_ABOVE_MAX = "price_above_max", _("Price above the maximum")
    PRICE_UNKNOWN = "price_unknown", _("Price not told")
    BUDGET_CAP = "budget_cap", _("Budget used up")
    AUTH_FAILED = "auth_failed", _("Key refused")
    PERMISSION_MISSING = "permission_missing", _("Key lacks a permission")
    RATE_LIMITED = "rate_limited", _("Asked too often")
    REQUEST_REFUSED = "request_refused", _("Request refused")
    NOT_ALLOWED_NOW = "not_allowed_now", _("Not possible in this state")
    NOT_SUPPORTED = "not_supported", _("Not offered by the provider")
    PROVIDER_DOWN = "provider_down", _("Provider not answering")
    PROVIDER_ANSWER = "provider_answer", _("Provider's answer not understood")
    OUTCOME_UNKNOWN = "outcome_unknown", _("Outcome unknown")
    ADDRESS_REFUSED = "address_refused", _("Address refused")
    BOOT_TIMEOUT = "boot_timeout", _("Did not start in time")
    JOIN_TIMEOUT = "join_timeout", _("Agent did not join in time")
    PREEMPTED = "preempted", _("Taken back by the provider")
    PROVIDER_DELETED = "provider_deleted", _("Ended at the provider")
    PROVIDER_FAILED = "provider_failed", _("Failed at the provider")
    CONTRACT_ENDED = "contract_ended", _("Contract ended")
    USER = "user", _("Asked for by a person")
    ADOPTED = "adopted", _("Found at the provider")


@dataclass(frozen=True, slots=True)
class Words:
    """What people read: why, and what to do next."""

    sentence: Promise
    next_step: Promise


REASON_WORDS: Final[dict[Reason, Words]] = {
    Reason.NONE: Words(_("Nothing is known against it."), _("Nothing to do.")),
    Reason.NO_OFFER: Words(
        _("The offer is no longer there."), _("Choose another offer; the list was read again just now.")
    ),
    Reason.NO_CAPACITY: Words(
        _("The provider has no such machine free at the moment."), _("Try another region or model, or try again later.")
    ),
    Reason.NO_QUOTA: Words(
        _("The account's quota for such machines is used up."), _("End a machine or ask the provider for more quota.")
    ),
    Reason.NO_BALANCE: Words(
        _("The account's balance does not allow it."), _("Top up the account at the provider, then try again.")
    ),
    Reason.PRICE_ABOVE_MAX: Words(
        _("The price now is above the maximum that was given."), _("Raise the maximum or choose another offer.")
    ),
    Reason.PRICE_UNKNOWN: Words(
        _("The provider tells no price, so it cannot be said that it keeps below the maximum that was given."),
        _("Choose an offer with a price, or take the maximum away, also the account's, if you accept any price."),
    ),
    Reason.BUDGET_CAP: Words(
        _("The account's budget for this month is used up."), _("Raise the budget, or override it with a reason.")
    ),
    Reason.AUTH_FAILED: Words(
        _("The provider refuses the key."), _("Put a valid key into the account; the machines keep running meanwhile.")
    ),
    Reason.PERMISSION_MISSING: Words(
        _("The key is valid and may not do this."),
        _("Give the key this permission at the provider, or use another key."),
    ),
    Reason.RATE_LIMITED: Words(
        _("The provider asks us to call less often."), _("Nothing to do: it is tried again when the provider allows.")
    ),
    Reason.REQUEST_REFUSED: Words(
        _("The provider refuses the request as it is."), _("Read the provider's words and change what was asked for.")
    ),
    Reason.NOT_ALLOWED_NOW: Words(
        _("The machine's present state does not allow it."), _("Wait until it has settled, then try again.")
    ),
    Reason.NOT_SUPPORTED: Words(
        _("The provider's API does not offer this."), _("Do it in the provider's own console.")
    ),
    Reason.PROVIDER_DOWN: Words(
        _("The provider does not answer."), _("Nothing to do: it is asked again, less and less often.")
    ),
    Reason.PROVIDER_ANSWER: Words(
        _("The provider's answer has a form that this version does not know."),
        _("Look whether there is a newer Fleetdeck; the answer stands in the log."),
    ),
    Reason.OUTCOME_UNKNOWN: Words(
        _("The answer was lost, so it is not known whether the provider did it."),
        _(
            "An order is searched for by itself and never sent twice. Anything else: look at the machine, and ask again."
        ),
    ),
    Reason.ADDRESS_REFUSED: Words(
        _("The address lies in a network that this panel does not connect to."),
        _("An administrator can allow the network with FLEETDECK_EGRESS_ALLOW."),
    ),
    Reason.BOOT_TIMEOUT: Words(
        _("The machine did not start within its time and may still cost money."),
        _("End it, or look at it in the provider's console."),
    ),
    Reason.JOIN_TIMEOUT: Words(
        _("The machine runs, but its agent has not joined within its time; it costs money."),
        _("Run the join line by hand on the machine, or end it."),
    ),
    Reason.PREEMPTED: Words(_("The provider took the machine back."), _("Order it again from its record.")),
    Reason.PROVIDER_DELETED: Words(
        _("The machine is gone at the provider, and not by us."), _("Order it again from its record, or retire it.")
    ),
    Reason.PROVIDER_FAILED: Words(
        _("The provider says that the machine has failed."), _("End it, so that it costs nothing, and order another.")
    ),
    Reason.CONTRACT_ENDED: Words(
        _("The contract's term is over."), _("Renew it at the provider, or retire the server.")
    ),
    Reason.USER: Words(_("A person asked for it."), _("Nothing to do.")),
    Reason.ADOPTED: Words(_("It was found in the account and adopted."), _("Nothing to do.")),
}
