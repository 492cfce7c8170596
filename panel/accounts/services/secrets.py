"""Rotation of the secrets at rest: every stored value is encrypted again with the current key."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from django.apps import apps
from django.db import models, transaction

from panel.accounts.audit import Actor, audit
from panel.core.crypto import EncryptedTextField, keyring, split

BATCH: Final = 200


def encrypted_columns() -> Iterator[tuple[type[models.Model], str]]:
    """Yield every model and field that holds secrets."""
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:  # noqa: SLF001 (public in Django)
            if isinstance(field, EncryptedTextField):
                yield model, field.name


def _stored(model: type[models.Model], field: str) -> models.QuerySet[Any]:
    """Return the column as it stands in the database, undeciphered."""
    raw = models.functions.Cast(models.F(field), output_field=models.TextField())
    return model._base_manager.annotate(raw_secret=raw).exclude(raw_secret__isnull=True).exclude(raw_secret="")  # noqa: SLF001


def keys_in_use() -> Counter[str]:
    """Return how many stored secrets each key has encrypted. Raises DecryptionError for a value of a foreign form."""
    used: Counter[str] = Counter()
    for model, field in encrypted_columns():
        for raw in _stored(model, field).values_list("raw_secret", flat=True).iterator():
            used[split(raw)[0]] += 1
    return used


def _rotate_batch(model: type[models.Model], field: str, after_pk: Any) -> tuple[int, Any]:
    """Encrypt up to one batch of rows again; return how many changed and the last primary key looked at."""
    ring = keyring()
    changed = 0
    with transaction.atomic():
        rows = _stored(model, field).select_for_update().order_by("pk")
        rows = rows if after_pk is None else rows.filter(pk__gt=after_pk)
        batch = list(rows.values_list("pk", "raw_secret")[:BATCH])
        for pk, raw in batch:
            if split(raw)[0] != ring.current_id:
                model._base_manager.filter(pk=pk).update(**{field: ring.decrypt(raw)})  # noqa: SLF001
                changed += 1
    return changed, batch[-1][0] if batch else None


def secrets_rotate(*, actor: Actor) -> int:
    """Encrypt all secrets that are not under the current key again, a batch a transaction; return how many.

    Safe to repeat, and while the panel runs. Raises DecryptionError when a value's key is missing; what was done stays done.
    """
    total = 0
    for model, field in encrypted_columns():
        changed, last = _rotate_batch(model, field, None)
        total += changed
        while last is not None:
            changed, last = _rotate_batch(model, field, last)
            total += changed
    audit(actor=actor, action="secrets.rotate", after={"rotated": total, "key_id": keyring().current_id})
    return total
