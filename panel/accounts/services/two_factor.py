"""The second factor: a code from an authenticator app (TOTP, RFC 6238), or one of ten recovery codes. Passkeys: passkeys.py.

A code is taken once: the time step of the last one is kept, and only a later one counts. Tries are limited per person,
wherever they come from, because here the password is known already.
"""

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import transaction
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext as _

from panel.accounts.audit import Actor, audit
from panel.accounts.models import Passkey, TwoFactor, User
from panel.core.clock import now
from panel.core.errors import Conflict, InvalidInput, NotAuthenticated, RateLimited
from panel.core.rates import Rate, count_attempt

STEP_SECONDS: Final = 30
DIGITS: Final = 6
SECRET_BYTES: Final = 20
DRIFT_STEPS: Final = 1
RECOVERY_CODES: Final = 10
ISSUER: Final = "Fleetdeck"
TRIES: Final = Rate(limit=8, period_seconds=300)


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an authenticator app needs. secret: base 32, to type; uri: the same for a QR code."""

    secret: str = field(repr=False)
    uri: str = field(repr=False)


def _totp(secret: str) -> TOTP:
    # SHA-1 is what every authenticator app assumes; HMAC does not need it to be free of collisions
    return TOTP(base64.b32decode(secret), DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def _device(user: User) -> TwoFactor | None:
    return TwoFactor.objects.filter(user=user, confirmed_at__isnull=False).first()


def two_factor_is_on(user: User) -> bool:
    """Say whether this person has an authenticator app."""
    return _device(user) is not None


def second_factor_is_due(user: User) -> bool:
    """Say whether logging in as this person takes more than the password: a code, or a passkey."""
    return two_factor_is_on(user) or Passkey.objects.filter(user=user).exists()


def two_factor_start(*, actor: Actor, user: User) -> Enrolment:
    """Make a secret for the person's app. It counts for nothing until `two_factor_confirm`. Raises Conflict when one is on."""
    if two_factor_is_on(user):
        raise Conflict(_("A second factor is on already. Switch it off first."), code="two_factor_on")
    secret = base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()
    with transaction.atomic():
        TwoFactor.objects.update_or_create(user=user, defaults={"secret": secret, "created_at": now(), "last_step": 0})
        audit(actor=actor, action="user.two_factor_start", target=user)
    return Enrolment(secret=secret, uri=_totp(secret).get_provisioning_uri(user.username, ISSUER))


def two_factor_confirm(*, actor: Actor, user: User, code: str) -> list[str]:
    """Switch the second factor on with a first code; return the recovery codes, shown this once. Raises InvalidInput."""
    second_factor_count_try(user)
    codes = [f"{secrets.token_hex(4)}-{secrets.token_hex(4)}" for _index in range(RECOVERY_CODES)]
    with transaction.atomic():
        device = TwoFactor.objects.select_for_update().filter(user=user, confirmed_at=None).first()
        if device is None:
            raise Conflict(_("Start the set-up first."), code="two_factor_not_started")
        step = _matching_step(device, code)
        if step is None:
            raise InvalidInput(
                _("This code is wrong. Look at the clock of the phone."), field="code", code="wrong_code"
            )
        device.confirmed_at, device.last_step = now(), step
        device.recovery_hashes = [_hash(item) for item in codes]
        device.save()
        audit(actor=actor, action="user.two_factor_on", target=user)
    return codes


def two_factor_disable(*, actor: Actor, user: User) -> None:
    """Switch it off; the caller has made sure that it may. Nothing happens when none is on."""
    with transaction.atomic():
        deleted, _rows = TwoFactor.objects.filter(user=user).delete()
        if deleted:
            audit(actor=actor, action="user.two_factor_off", target=user)


def two_factor_reset(*, actor: Actor, user: User) -> None:
    """Take every second factor from a person who has lost theirs: app, recovery codes and passkeys."""
    with transaction.atomic():
        two_factor_disable(actor=actor, user=user)
        names = list(Passkey.objects.filter(user=user).order_by("id").values_list("name", flat=True))
        Passkey.objects.filter(user=user).delete()
        for name in names:
            audit(actor=actor, action="user.passkey_remove", target=user, before={"name": name})


def two_factor_check(*, user: User, code: str) -> None:
    """Take a code, if the person needs one.

    Raises NotAuthenticated (`code_required`, `wrong_code`; `passkey_required`: there is no app, only a browser can go on)
    or RateLimited.
    """
    if not second_factor_is_due(user):
        return
    if not two_factor_is_on(user):
        raise NotAuthenticated(
            _("This account logs in with a passkey, in a browser. Make an API token in the settings there."),
            code="passkey_required",
        )
    if not code:
        raise NotAuthenticated(_("Give the code of your authenticator app."), code="code_required")
    second_factor_count_try(user)
    with transaction.atomic():
        device = TwoFactor.objects.select_for_update().filter(user=user).first()
        if device is not None and not (_take_code(device, code) or _take_recovery_code(device, code)):
            raise NotAuthenticated(_("This code is wrong or was used already."), code="wrong_code")


def second_factor_count_try(user: User) -> None:
    """Count one try of this person's second factor. Raises RateLimited."""
    wait = count_attempt("two-factor", str(user.pk), TRIES)
    if wait is not None:
        raise RateLimited(_("Too many attempts. Try again in a few minutes."), retry_after_seconds=wait)


def _matching_step(device: TwoFactor, code: str) -> int | None:
    """Return the time step, near now and later than the last one taken, whose code this is."""
    totp, present = _totp(device.secret), int(time.time()) // STEP_SECONDS
    for step in range(present - DRIFT_STEPS, present + DRIFT_STEPS + 1):
        expected = totp.generate(step * STEP_SECONDS).decode()
        if step > device.last_step and constant_time_compare(expected, code.replace(" ", "")):
            return step
    return None


def _take_code(device: TwoFactor, code: str) -> bool:
    step = _matching_step(device, code)
    if step is None:
        return False
    device.last_step = step
    device.save(update_fields=["last_step"])
    return True


def _take_recovery_code(device: TwoFactor, code: str) -> bool:
    digest = _hash(code.strip().lower())
    left = [item for item in device.recovery_hashes if not constant_time_compare(item, digest)]
    if len(left) == len(device.recovery_hashes):
        return False
    device.recovery_hashes = left
    device.save(update_fields=["recovery_hashes"])
    return True
