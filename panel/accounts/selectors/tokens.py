"""Which API tokens an actor may see."""

from django.db.models import QuerySet

from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability, has_capability
from panel.accounts.models import ApiToken


def token_list(*, actor: Actor) -> QuerySet[ApiToken]:
    """Return the actor's own tokens, or everybody's with `tokens.manage`; newest first, revoked ones included."""
    rows = ApiToken.objects.select_related("user").order_by("-id")
    if has_capability(actor.role, Capability.TOKENS_MANAGE):
        return rows
    return rows.none() if actor.user_id is None else rows.filter(user_id=actor.user_id)
