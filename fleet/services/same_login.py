"""Whether a new key belongs to the login whose machines an account holds: with another one, all of them would look gone."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.models import Lease, ProviderAccount
from fleet.providers.base import AccountCheck, Provider
from fleet.providers.errors import ProviderError
from fleet.providers.registry import connect
from panel.core.errors import Conflict


@dataclass(frozen=True, slots=True)
class Tried:
    """What trying a key found. seen: ids of the machines that it shows, None when they were not asked for or not told."""

    check: AccountCheck
    seen: frozenset[str] | None = None


def open_machines(account: ProviderAccount) -> set[str]:
    """Return the provider's ids of the account's open leases; "" stands for those whose machine is not known yet."""
    return set(Lease.objects.filter(account=account, ended_at=None).values_list("external_id", flat=True))


def try_machines(
    account: ProviderAccount, check: AccountCheck, *, credentials: Mapping[str, str], options: Mapping[str, str]
) -> Tried:
    """Ask which machines a key that works shows, where the provider's word on whose key it is does not settle it."""
    provider = connect(account.kind, credentials=credentials, options=options, account="check")
    if not provider.is_synced or not open_machines(account) or _is_same_by_name(provider, account, check):
        return Tried(check)
    try:
        return Tried(check, frozenset(machine.external_id for machine in provider.machines()))
    except ProviderError:
        return Tried(check)  # what the key does not show counts as not seen


def _is_same_by_name(provider: type[Provider] | Provider, account: ProviderAccount, check: AccountCheck) -> bool | None:
    """Return whether old and new key are of one login, None where the provider names nobody."""
    if not account.identity or not check.identity:
        return None
    return provider.login_of(account.identity) == provider.login_of(check.identity)


def refuse_other_login(
    provider: type[Provider], account: ProviderAccount, tried: Tried, *, is_confirmed: bool = False
) -> None:
    """Raise Conflict when a key is not shown to be of the login that the open leases belong to. On the locked account.

    is_confirmed: a person says that it is; that counts where the provider itself does not name another login.
    """
    is_same = _is_same_by_name(provider, account, tried.check)
    held = open_machines(account) if provider.is_synced else set()
    if not held or is_same:
        return
    if is_same is False:
        raise Conflict(
            _(
                "The provider says that this key belongs to %(new)s; the open leases of this account belong to %(old)s. "
                "Add the key as another account, or end the leases first."
            )
            % {"new": tried.check.identity, "old": account.identity},
            code="another_login",
            field="credentials",
        )
    unseen = held - (tried.seen or frozenset())
    if unseen and not is_confirmed:
        raise Conflict(
            ngettext(
                "%(unseen)s of %(count)s machine of this account is not shown to this key: it may belong to another login.",
                "%(unseen)s of %(count)s machines of this account are not shown to this key: it may belong to another login.",
                len(held),
            )
            % {"unseen": len(unseen), "count": len(held)}
            + " "
            + _("Add it as another account, or confirm that it is a key of the same login."),
            code="login_not_shown",
            field="credentials",
        )
