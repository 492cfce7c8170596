"""People and their tokens, and what they did."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models
from django.db.models.functions import Lower

from panel.accounts.enums import Role, Theme
from panel.core.crypto import EncryptedTextField


class PeopleManager(UserManager["User"]):
    """Finds people by name without regard to case: `Ada` and `ada` are one person."""

    def get_by_natural_key(self, username: str | None) -> "User":
        """Return the person of that name. Raises User.DoesNotExist."""
        return self.get(username__iexact=username or "")


class User(AbstractUser):
    """A person who logs in. `role` decides what they may do; language, zone and theme how pages look to them."""

    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    language = models.CharField(max_length=16, blank=True, default="")
    time_zone = models.CharField(max_length=64, blank=True, default="")
    theme = models.CharField(max_length=8, choices=Theme.choices, default=Theme.AUTO)
    has_shortcuts = models.BooleanField(default=True)

    objects: ClassVar[PeopleManager] = PeopleManager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known"),
            models.CheckConstraint(condition=models.Q(theme__in=Theme.values), name="user_theme_known"),
            models.UniqueConstraint(Lower("username"), name="user_name_unique"),
        ]


class TwoFactor(models.Model):
    """A person's second factor: codes that change every 30 seconds (TOTP), and ten codes for when the phone is lost.

    It counts once `confirmed_at` is set. last_step: the time step of the last code taken, so that none is taken twice.
    recovery_hashes: SHA-256 of the recovery codes that are left.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="two_factor")
    secret = EncryptedTextField()
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)
    recovery_hashes: Any = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"


class Passkey(models.Model):
    """A passkey or security key (WebAuthn) that counts as its owner's second factor on the host `rp_id`.

    sign_count: the authenticator's own counter at its last use; 0 for those that have none. transports: how browsers reach it.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=100)
    rp_id = models.CharField(max_length=253)
    credential_id = models.BinaryField(unique=True, max_length=1023)
    public_key = models.BinaryField()
    sign_count = models.PositiveBigIntegerField(default=0)
    transports: Any = models.JSONField(default=list)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"passkey {self.name} of {self.user_id}"


class LoginSession(models.Model):
    """What a person sees of one of their log-ins. The session itself is Django's; this row goes when that ends."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="login_sessions")
    session_key = models.CharField(max_length=40, unique=True)
    created_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    address = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.user_id} from {self.address}"


class ApiToken(models.Model):
    """A bearer token for automation: shown once, stored as SHA-256, recognised by its prefix."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    token_hash = models.CharField(max_length=64)
    scope = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(scope__in=Role.values), name="apitoken_scope_known")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class AuditEntry(models.Model):
    """Who did what to which object, and what it changed. Append-only: a database trigger refuses update and delete."""

    at = models.DateTimeField(db_index=True)
    actor_kind = models.CharField(max_length=16)  # user, token, agent, system, stranger
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=200)
    action = models.CharField(max_length=64)  # dotted: server.rename, token.create, auth.login
    target_kind = models.CharField(max_length=32, blank=True)
    target_id = models.BigIntegerField(null=True)
    target_name = models.CharField(max_length=200, blank=True)
    before: Any = models.JSONField(null=True)
    after: Any = models.JSONField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        indexes = [models.Index(fields=["target_kind", "target_id", "-at"], name="audit_by_target")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name} {self.action}"
