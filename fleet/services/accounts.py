"""Accounts at providers: added with a live check of the key, changed, paused, removed."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from fleet.enums import AccountHealth
from fleet.models import Lease, ProviderAccount
from fleet.providers.base import AccountCheck, Field, Provider, missing_fields
from fleet.providers.errors import ProviderError
from fleet.providers.registry import connect, provider_type
from fleet.reasons import REASON_WORDS, Reason
from fleet.services.cleaning import clean_text
from fleet.services.same_login import Tried, refuse_other_login, try_machines
from panel.accounts.audit import Actor, audit
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotFound

CURRENCIES_SHOWN: Final = 3


def account_locked(account_id: int) -> ProviderAccount:
    """Return the account's row, locked. Raises NotFound, also for one that was removed."""
    account = ProviderAccount.objects.select_for_update(no_key=True).filter(pk=account_id, removed_at=None).first()
    if account is None:
        raise NotFound(_("There is no such provider account."))
    return account


def account_provider(account: ProviderAccount) -> Provider:
    """Return the account's provider, ready to be asked."""
    credentials = json.loads(account.credentials) if account.credentials else {}
    return connect(account.kind, credentials=credentials, options=account.options, account=f"account-{account.pk}")


def _clean_fields(fields: tuple[Field, ...], values: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the values of known fields as text. Raises InvalidInput naming what is missing, unknown or not offered."""
    known = {field.name: field for field in fields}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InvalidInput(_("Not known here: %(names)s.") % {"names": ", ".join(unknown)}, field=where)
    cleaned = {name: str(value).strip()[: known[name].max_length] for name, value in values.items()}
    missing = missing_fields(fields, cleaned)
    if missing:
        names = ", ".join(str(known[name].label) for name in missing)
        raise InvalidInput(_("Still missing: %(names)s.") % {"names": names}, field=where)
    for name, value in cleaned.items():
        if known[name].choices and value and value not in known[name].choices:
            raise InvalidInput(
                _("%(value)s is not one of the choices of %(name)s.") % {"value": value, "name": known[name].label},
                field=where,
            )
    return cleaned


def credential_hint(fields: tuple[Field, ...], values: Mapping[str, str]) -> str:
    """Return what may be shown of credentials: the last four characters of a long secret, ids that are no secret whole."""
    shown = []
    for field in fields:
        value = values.get(field.name, "")
        if not field.is_secret:
            shown.append(value)
        elif len(value) >= 16:
            shown.append(f"…{value[-4:]}")
    return " ".join(part for part in shown if part)[:64]


def provider_check(kind: str, *, credentials: Mapping[str, str], options: Mapping[str, str]) -> AccountCheck:
    """Ask the provider about a key, before anything is stored. Raises InvalidInput with the provider's words."""
    try:
        return connect(kind, credentials=credentials, options=options, account="check").check()
    except ProviderError as error:
        sentence = _("%(why)s The provider said: %(words)s")
        words = {"why": REASON_WORDS[error.reason].sentence, "words": error.message}
        raise InvalidInput(sentence % words, code=str(error.reason), field="credentials") from error


def _apply_check(account: ProviderAccount, check: AccountCheck) -> None:
    account.identity = clean_text(check.identity, 200)
    account.permissions = dict(check.permissions)
    account.health, account.health_reason = AccountHealth.OK, Reason.NONE
    account.failures, account.last_error = 0, {}
    if check.balance is not None:
        account.balance, account.balance_at = check.balance.rounded().amount, now()
        account.currency = check.balance.currency


def _check_name(name: str) -> str:
    name = clean_text(name, 100)
    if not name:
        raise InvalidInput(_("Give the account a name."), field="name")
    return name


def account_create(
    *,
    name: str,
    kind: str,
    credentials: Mapping[str, Any],
    actor: Actor,
    options: Mapping[str, Any] | None = None,
    is_adopting: bool = False,
    monthly_budget: Decimal | None = None,
    max_price_per_hour: Decimal | None = None,
) -> ProviderAccount:
    """Add an account after asking the provider whether the key works. Raises InvalidInput."""
    provider = provider_type(kind)
    name = _check_name(name)
    secrets = _clean_fields(tuple(provider.credential_fields), credentials, "credentials")
    chosen = _clean_fields(tuple(provider.option_fields), options or {}, "options")
    check = provider_check(kind, credentials=secrets, options=chosen)
    at = now()
    account = ProviderAccount(
        name=name,
        kind=kind,
        credentials=json.dumps(secrets) if secrets else "",
        credential_hint=credential_hint(tuple(provider.credential_fields), secrets),
        options=chosen,
        currency=provider.currency,
        is_adopting=is_adopting,
        monthly_budget=monthly_budget,
        max_price_per_hour=max_price_per_hour,
        next_sync_at=at,
        next_offers_at=at,
        created_at=at,
        created_by_name=actor.name[:200],
    )
    _apply_check(account, check)
    try:
        with transaction.atomic():
            account.save()
            audit(actor=actor, action="account.create", target=account, after={"name": name, "kind": kind})
    except IntegrityError:
        raise InvalidInput(_("There is an account of that name already."), code="name_taken", field="name") from None
    return account


def account_update(
    *,
    account_id: int,
    actor: Actor,
    credentials: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    is_same_login: bool = False,
    **changes: Any,
) -> ProviderAccount:
    """Change an account; new credentials or options are tried first. Raises InvalidInput or NotFound.

    Raises Conflict for a key of another login while leases are open; is_same_login: a person confirms that it is none,
    where the provider does not tell.
    changes: any of name, is_adopting, is_paused, monthly_budget, max_price_per_hour.
    """
    account = ProviderAccount.objects.filter(pk=account_id, removed_at=None).first()
    if account is None:
        raise NotFound(_("There is no such provider account."))
    provider = provider_type(account.kind)
    if "name" in changes:
        changes["name"] = _check_name(changes["name"])
    tried = None
    if credentials is not None or options is not None:
        secrets = json.loads(account.credentials) if account.credentials else {}
        if credentials is not None:
            secrets = _clean_fields(tuple(provider.credential_fields), credentials, "credentials")
            changes["credentials"] = json.dumps(secrets)
            changes["credential_hint"] = credential_hint(tuple(provider.credential_fields), secrets)
        if options is not None:
            changes["options"] = _clean_fields(tuple(provider.option_fields), options, "options")
        wanted = changes.get("options", account.options)
        check = provider_check(account.kind, credentials=secrets, options=wanted)
        tried = try_machines(account, check, credentials=secrets, options=wanted)
    try:
        return _store_update(account_id, changes, tried, actor, is_same_login=is_same_login)
    except IntegrityError:
        raise InvalidInput(_("There is an account of that name already."), code="name_taken", field="name") from None


def _store_update(
    account_id: int, changes: dict[str, Any], tried: Tried | None, actor: Actor, *, is_same_login: bool
) -> ProviderAccount:
    with transaction.atomic():
        account = account_locked(account_id)
        if tried is not None:
            refuse_other_login(provider_type(account.kind), account, tried, is_confirmed=is_same_login)
        before = {name: getattr(account, name) for name in changes}
        for name, value in changes.items():
            setattr(account, name, value)
        if tried is not None:
            _apply_check(account, tried.check)
            account.next_sync_at = now()
        if "is_paused" in changes:
            account.health = AccountHealth.PAUSED if account.is_paused else AccountHealth.NEW
            account.next_sync_at = now()
        if tried is not None or "is_paused" in changes:
            account.claim = account.claimed_until = None  # what is under way was asked as it was before
        account.save()
        shown = {name: value for name, value in changes.items() if name != "credentials"}
        if "credentials" in changes:
            shown["credentials_replaced"], before = True, {k: v for k, v in before.items() if k != "credentials"}
        audit(actor=actor, action="account.update", target=account, before=before, after=shown)
    return account


def account_sync_soon(*, account_id: int, actor: Actor) -> ProviderAccount:
    """Let the next tick ask the provider, and fetch its offers too. Raises NotFound, or Conflict while it is paused."""
    with transaction.atomic():
        account = account_locked(account_id)
        if account.is_paused:
            raise Conflict(_("This account is paused. Switch it on first."), code="paused")
        account.next_sync_at = at = now()
        account.next_offers_at = at if account.next_offers_at is not None else None
        account.save(update_fields=["next_sync_at", "next_offers_at"])
        audit(actor=actor, action="account.sync", target=account)
    return account


def account_remove(*, account_id: int, actor: Actor, reason: str = "") -> None:
    """Remove an account and wipe its key. Raises Conflict while a lease of it is open: nobody could end it any more."""
    with transaction.atomic():
        account = account_locked(account_id)
        is_open = Lease.objects.filter(account=account, ended_at=None).count()
        if is_open:
            raise Conflict(
                _("%(count)s leases of this account are open. End them first: without the key nobody can.")
                % {"count": is_open},
                code="leases_open",
            )
        account.removed_at, account.credentials, account.credential_hint = now(), "", ""
        account.claim = account.claimed_until = None  # a sync that is under way is not applied any more
        account.save(update_fields=["removed_at", "credentials", "credential_hint", "claim", "claimed_until"])
        account.offers.all().delete()
        audit(actor=actor, action="account.remove", target=account, reason=reason)
