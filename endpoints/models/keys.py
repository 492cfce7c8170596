"""What callers prove themselves with, and secrets that engines need."""

from django.db import models

from panel.core.crypto import EncryptedTextField


class ApiKey(models.Model):
    """A caller's key: only its SHA-256 is kept. endpoints: names, empty for all.

    Limits per minute, None for none: requests are counted by each gateway, tokens by the panel from what engines reported.
    held_until: over its tokens, refused until then. routing_version: see Endpoint.
    """

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    endpoints = models.JSONField(default=list)
    requests_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_minute = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    held_until = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    routing_version = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class Secret(models.Model):
    """A value that engines get in their environment, by name; never shown again."""

    name = models.CharField(max_length=64, unique=True)
    value = EncryptedTextField()
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name
