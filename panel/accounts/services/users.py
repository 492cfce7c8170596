"""People: made, changed, removed. The last admin stays one, whatever is asked."""

import zoneinfo
from typing import Any, Final, cast

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from panel.accounts.audit import Actor, audit
from panel.accounts.enums import Role, Theme
from panel.accounts.models import User
from panel.accounts.services.sessions import session_refresh, sessions_end_all
from panel.core.errors import Conflict, InvalidInput, NotFound, RateLimited
from panel.core.rates import Rate, count_attempt, refund_attempt

MAX_PASSWORD_LENGTH: Final = 1024
PASSWORD_GUESSES: Final = Rate(limit=10, period_seconds=300)
PREFERENCES: Final[tuple[str, ...]] = ("language", "time_zone", "theme", "has_shortcuts")


def _facts(user: User) -> dict[str, Any]:
    return {"username": user.username, "email": user.email, "role": str(user.role), "is_active": user.is_active}


def _check_password(password: str, user: User) -> None:
    if len(password) > MAX_PASSWORD_LENGTH:
        raise InvalidInput(_("The password is too long."), field="password")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), field="password") from error


def _check_names(username: str, email: str) -> None:
    try:
        UnicodeUsernameValidator()(username)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), field="username") from error
    try:
        if email:
            validate_email(email)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), field="email") from error


def _role(role: str) -> Role:
    try:
        return Role(role)
    except ValueError as error:
        raise InvalidInput(_("There is no role “%(role)s”.") % {"role": role}, field="role") from error


def _save(user: User) -> None:
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise InvalidInput(_("Somebody has this name already."), field="username", code="unique") from error


def user_create(*, actor: Actor, username: str, password: str, role: str = Role.VIEWER, email: str = "") -> User:
    """Make a person who can log in at once. Raises InvalidInput."""
    user = User(username=User.normalize_username(username.strip()), role=_role(role), email=email.strip())
    _check_names(user.username, user.email)
    _check_password(password, user)
    user.set_password(password)
    with transaction.atomic():
        _save(user)
        audit(actor=actor, action="user.create", target=user, after=_facts(user))
    return user


def admin_ensure(*, username: str, password: str) -> User | None:
    """Make the first admin; do nothing and return None when somebody is one already. Raises InvalidInput."""
    if User.objects.filter(role=Role.ADMIN, is_active=True).exists():
        return None
    return user_create(actor=Actor.system("ensure_admin"), username=username, password=password, role=Role.ADMIN)


def _lock(user_id: int) -> User:
    """Lock the person and, first, all active admins in one order, so that two demotions cannot cross. Raises NotFound."""
    list(User.objects.select_for_update().filter(role=Role.ADMIN, is_active=True).order_by("pk").values_list("pk"))
    user = User.objects.select_for_update().filter(pk=user_id).first()
    if user is None:
        raise NotFound(_("There is no such person."))
    return user


def _keep_an_admin(user: User) -> None:
    """Refuse what would leave nobody who may manage people. The caller holds the locks."""
    others = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk)
    if user.role == Role.ADMIN and user.is_active and not others.exists():
        raise Conflict(_("This is the last admin. Make somebody else an admin first."), code="last_admin")


def user_update(
    *,
    actor: Actor,
    user_id: int,
    username: str | None = None,
    email: str | None = None,
    role: str | None = None,
    is_active: bool | None = None,
) -> User:
    """Change what is given of a person. Deactivating ends their sessions, and their tokens stop working with it.

    Raises NotFound, InvalidInput, or Conflict for the last admin.
    """
    with transaction.atomic():
        user = _lock(user_id)
        before = _facts(user)
        wanted_role = Role(user.role) if role is None else _role(role)
        wanted_active = user.is_active if is_active is None else is_active
        if wanted_role != Role.ADMIN or not wanted_active:
            _keep_an_admin(user)
        user.role, user.is_active = wanted_role, wanted_active
        user.username = user.username if username is None else User.normalize_username(username.strip())
        user.email = user.email if email is None else email.strip()
        _check_names(user.username, user.email)
        after = _facts(user)
        if after != before:
            _save(user)
            changed = {key for key in after if after[key] != before[key]}
            audit(
                actor=actor,
                action="user.update",
                target=user,
                before={key: before[key] for key in sorted(changed)},
                after={key: after[key] for key in sorted(changed)},
            )
        if not user.is_active:
            sessions_end_all(actor=actor, user=user, reason="deactivated")
    return user


def user_delete(*, actor: Actor, user_id: int) -> None:
    """Remove a person with their tokens and sessions; what they did stays in the audit trail. Raises NotFound, Conflict."""
    with transaction.atomic():
        user = _lock(user_id)
        _keep_an_admin(user)
        sessions_end_all(actor=actor, user=user, reason="deleted")
        audit(actor=actor, action="user.delete", target=user, before=_facts(user))
        user.delete()


def password_set(*, actor: Actor, user_id: int, password: str) -> None:
    """Give a person a new password, as an admin does. All their sessions end. Raises NotFound or InvalidInput."""
    with transaction.atomic():
        user = _lock(user_id)
        _store_password(actor=actor, user=user, password=password, except_key=None)


def password_change(*, actor: Actor, request: HttpRequest, current: str, new: str) -> None:
    """Change one's own password, the present one given. Every session but the request's own ends.

    Raises InvalidInput, or RateLimited: a stolen session must not become a way to try passwords.
    """
    user = cast("User", request.user)
    password_prove(user=user, password=current, field="current_password")
    with transaction.atomic():
        locked = User.objects.select_for_update().get(pk=user.pk)
        _store_password(actor=actor, user=locked, password=new, except_key=request.session.session_key)
        session_refresh(request, locked)


def password_prove(*, user: User, password: str, field: str = "password") -> None:
    """Make sure that whoever sits there knows the password. Raises InvalidInput or RateLimited."""
    wait = count_attempt("password-prove", str(user.pk), PASSWORD_GUESSES)
    if wait is not None:
        raise RateLimited(_("Too many attempts. Try again in a few minutes."), retry_after_seconds=wait)
    if not user.check_password(password):
        raise InvalidInput(_("The present password is wrong."), field=field, code="wrong_password")
    refund_attempt("password-prove", str(user.pk), PASSWORD_GUESSES)


def _store_password(*, actor: Actor, user: User, password: str, except_key: str | None) -> None:
    _check_password(password, user)
    user.set_password(password)
    user.save(update_fields=["password"])
    audit(actor=actor, action="user.password", target=user)
    sessions_end_all(actor=actor, user=user, except_key=except_key, reason="password changed")


def preferences_update(*, actor: Actor, user: User, **wanted: Any) -> User:
    """Set language, time_zone, theme or has_shortcuts of one's own pages; empty text means automatic. Raises InvalidInput."""
    language, zone, theme = (wanted.get(key) for key in ("language", "time_zone", "theme"))
    if language and language not in dict(settings.LANGUAGES):
        raise InvalidInput(_("This language is not there yet."), field="language")
    if zone and zone not in zoneinfo.available_timezones():
        raise InvalidInput(_("There is no time zone “%(zone)s”.") % {"zone": zone}, field="time_zone")
    if theme is not None and theme not in Theme.values:
        raise InvalidInput(_("There is no theme “%(theme)s”.") % {"theme": theme}, field="theme")
    changed = {key: wanted[key] for key in PREFERENCES if key in wanted and wanted[key] != getattr(user, key)}
    if not changed:
        return user
    before = {key: getattr(user, key) for key in changed}
    for key, value in changed.items():
        setattr(user, key, value)
    with transaction.atomic():
        user.save(update_fields=list(changed))
        audit(actor=actor, action="user.preferences", target=user, before=before, after=changed)
    return user
