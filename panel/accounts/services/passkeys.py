"""Passkeys and security keys (WebAuthn) as a second factor: registered, named, removed, and asked for at a log-in.

The authenticator verifies its user by finger, face or PIN each time. A counter that goes back means that the key was copied,
and is refused. Attestation is not asked for: any authenticator that its owner trusts is good.
"""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    base64url_to_bytes,
    parse_authentication_credential_json,
    parse_registration_credential_json,
)
from webauthn.helpers.exceptions import InvalidAuthenticationResponse, InvalidRegistrationResponse, WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from panel.accounts.audit import Actor, audit
from panel.accounts.models import Passkey, User
from panel.accounts.services.challenges import LIFETIME_SECONDS, challenge_keep, challenge_take
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotAuthenticated, NotFound

RP_NAME: Final = "Fleetdeck"
REGISTER: Final = "register"
LOG_IN: Final = "log-in"
KEPT: Final = 20
NAME_LENGTH: Final = 100
_TIMEOUT_MS: Final = LIFETIME_SECONDS * 1000
# What the library raises for an answer that is no such answer: its own errors, and those of the decoders beneath it.
_BROKEN: Final = (WebAuthnException, ValueError, KeyError, TypeError)

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """Who asks, in WebAuthn's words: the host name that a passkey belongs to, and the origin of the page."""

    id: str
    origin: str


def relying_party(request: HttpRequest) -> RelyingParty:
    """Return the panel as this request names it; only hosts of FLEETDECK_ALLOWED_HOSTS get this far.

    Raises InvalidInput for an address of numbers: browsers take names only.
    """
    host = request.get_host()
    name = _host_name(host)
    if name is None:
        raise InvalidInput(
            _("Passkeys need a host name: open the panel by its name instead of its IP address."), code="no_host_name"
        )
    return RelyingParty(id=name, origin=f"{request.scheme}://{host}")


def _host_name(host: str) -> str | None:
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name.lower()
    return None


def _descriptors(passkeys: Sequence[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    known = {transport.value: transport for transport in AuthenticatorTransport}
    return [
        PublicKeyCredentialDescriptor(
            id=bytes(passkey.credential_id),
            transports=[known[name] for name in passkey.transports if name in known] or None,
        )
        for passkey in passkeys
    ]


def passkey_start(*, actor: Actor, user: User, party: RelyingParty) -> Options:
    """Return what `navigator.credentials.create()` needs; good for one answer within five minutes. Raises Conflict."""
    mine = list(Passkey.objects.filter(user=user))
    if len(mine) >= KEPT:
        raise Conflict(_("You have %(count)s passkeys already. Remove one first.") % {"count": KEPT}, code="too_many")
    options = generate_registration_options(
        rp_id=party.id,
        rp_name=RP_NAME,
        user_name=user.username,
        user_id=str(user.pk).encode(),
        timeout=_TIMEOUT_MS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.DISCOURAGED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=_descriptors([passkey for passkey in mine if passkey.rp_id == party.id]),
    )
    challenge_keep(purpose=REGISTER, whose=str(user.pk), challenge=options.challenge)
    audit(actor=actor, action="user.passkey_start", target=user)
    answer: Options = json.loads(options_to_json(options))
    return answer


def passkey_register(*, actor: Actor, user: User, party: RelyingParty, name: str, credential: Options) -> Passkey:
    """Keep what the authenticator made. Raises InvalidInput or Conflict."""
    name = _clean_name(name)
    challenge = challenge_take(purpose=REGISTER, whose=str(user.pk))
    if challenge is None:
        raise InvalidInput(_("That took too long. Start again."), code="challenge_expired")
    try:
        parsed = parse_registration_credential_json(credential)
        verified = verify_registration_response(
            credential=parsed,
            expected_challenge=challenge,
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
    except (*_BROKEN, InvalidRegistrationResponse) as error:
        raise InvalidInput(_("The browser's answer cannot be used: %(error)s") % {"error": error}) from error
    transports = [transport.value for transport in parsed.response.transports or []]
    with transaction.atomic():
        passkey, is_new = Passkey.objects.get_or_create(
            credential_id=verified.credential_id,
            defaults={
                "user": user,
                "name": name,
                "rp_id": party.id,
                "public_key": verified.credential_public_key,
                "sign_count": verified.sign_count,
                "transports": transports,
                "created_at": now(),
            },
        )
        if not is_new:
            raise Conflict(_("This passkey is registered already."), code="passkey_known")
        audit(actor=actor, action="user.passkey_add", target=user, after={"name": name})
    return passkey


def _clean_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= NAME_LENGTH:
        raise InvalidInput(_("Give the passkey a name of at most %(n)s characters.") % {"n": NAME_LENGTH}, field="name")
    return name


def _locked(user: User, passkey_id: int) -> Passkey:
    passkey = Passkey.objects.select_for_update().filter(user=user, pk=passkey_id).first()
    if passkey is None:
        raise NotFound(_("There is no such passkey."))
    return passkey


def passkey_rename(*, actor: Actor, user: User, passkey_id: int, name: str) -> Passkey:
    """Call one's passkey something else. Raises NotFound or InvalidInput."""
    name = _clean_name(name)
    with transaction.atomic():
        passkey = _locked(user, passkey_id)
        if passkey.name != name:
            before, passkey.name = passkey.name, name
            passkey.save(update_fields=["name"])
            audit(actor=actor, action="user.passkey_rename", target=user, before={"name": before}, after={"name": name})
    return passkey


def passkey_remove(*, actor: Actor, user: User, passkey_id: int) -> None:
    """Forget one's passkey; the caller has made sure that it may. Raises NotFound."""
    with transaction.atomic():
        passkey = _locked(user, passkey_id)
        passkey.delete()
        audit(actor=actor, action="user.passkey_remove", target=user, before={"name": passkey.name})


def passkey_ask(*, user: User, party: RelyingParty, session_key: str) -> Options | None:
    """Return what `navigator.credentials.get()` needs at this log-in; None when no passkey of theirs fits this host."""
    mine = list(Passkey.objects.filter(user=user, rp_id=party.id))
    if not mine:
        return None
    options = generate_authentication_options(
        rp_id=party.id,
        timeout=_TIMEOUT_MS,
        allow_credentials=_descriptors(mine),
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    challenge_keep(purpose=LOG_IN, whose=session_key, challenge=options.challenge)
    answer: Options = json.loads(options_to_json(options))
    return answer


def passkey_check(*, user: User, party: RelyingParty, session_key: str, credential: Options | str) -> None:
    """Take the authenticator's answer to `passkey_ask`. Raises NotAuthenticated (`wrong_passkey`)."""
    challenge = challenge_take(purpose=LOG_IN, whose=session_key)
    wrong = NotAuthenticated(_("The passkey was not accepted. Try again."), code="wrong_passkey")
    if challenge is None:
        raise wrong
    try:
        parsed = parse_authentication_credential_json(credential)
        with transaction.atomic():
            passkey = Passkey.objects.select_for_update().get(
                user=user, rp_id=party.id, credential_id=base64url_to_bytes(parsed.id)
            )
            verified = verify_authentication_response(
                credential=parsed,
                expected_challenge=challenge,
                expected_rp_id=party.id,
                expected_origin=party.origin,
                credential_public_key=bytes(passkey.public_key),
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
            passkey.sign_count, passkey.last_used_at = verified.new_sign_count, now()
            passkey.save(update_fields=["sign_count", "last_used_at"])
    except (*_BROKEN, InvalidAuthenticationResponse, Passkey.DoesNotExist) as error:
        raise wrong from error


def are_passkeys_possible(request: HttpRequest) -> bool:
    """Say whether browsers offer passkeys on this address: a name, over TLS or on this very machine."""
    name = _host_name(request.get_host())
    return name is not None and (request.is_secure() or settings.IS_HTTPS or name == "localhost")
