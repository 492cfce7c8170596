"""Claims: one process at a time does the outside work of a row, outside any transaction, and only for so long.

claim → call → apply: the row is claimed for some seconds, the network is asked without a transaction, and what came back is
applied under a row lock by whoever still holds the claim. A process that dies leaves a claim that runs out.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import models
from django.db.models import Q

from panel.core.clock import now


def unclaimed(at: datetime) -> Q:
    """Return the condition of a row that may be claimed at this time."""
    return Q(claim=None) | Q(claimed_until__lte=at)


def claim(queryset: "models.QuerySet[Any]", pk: int, *, seconds: float) -> UUID | None:
    """Claim one row of a model with `claim` and `claimed_until`; None when another process holds it or it is not in the set."""
    at, token = now(), uuid4()
    claimed_until = at + timedelta(seconds=seconds)
    taken = queryset.filter(unclaimed(at), pk=pk).update(claim=token, claimed_until=claimed_until)
    return token if taken else None


def release(model: type[models.Model], pk: int, token: UUID) -> None:
    """Give a claim back, if it is still ours."""
    model._default_manager.filter(pk=pk, claim=token).update(claim=None, claimed_until=None)  # noqa: SLF001 (Django's own)
