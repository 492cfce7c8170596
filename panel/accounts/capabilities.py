"""What each role may do: one table, read by the API, the pages and the live topics.

Every check asks for a capability, never for a role. What is not in the table is refused.
"""

from enum import StrEnum
from typing import Final

from panel.accounts.enums import Role


class Capability(StrEnum):
    """One thing that a person or token may be allowed to do."""

    FLEET_VIEW = "fleet.view"  # servers, GPUs, agents, series, live topics
    EVENTS_VIEW = "events.view"
    HEALTH_VIEW = "health.view"  # the panel's own health and metrics
    PROFILE_EDIT = "profile.edit"  # one's own settings, password and sessions
    TOKENS_OWN = "tokens.own"  # one's own API tokens
    SERVERS_MANAGE = "servers.manage"  # rename, label, drain, retire
    JOIN_TOKENS_MANAGE = "join_tokens.manage"  # let a machine join
    LEASES_MANAGE = "leases.manage"  # order, stop and end machines: it spends money
    ENDPOINTS_MANAGE = "endpoints.manage"  # deploy, scale, delete; keys of callers, secrets of engines, gateways
    ALERTS_MANAGE = "alerts.manage"  # rules, silences, acknowledgements
    PROBES_MANAGE = "probes.manage"  # what is probed, from where, how often
    DIAGNOSES_RUN = "diagnoses.run"  # measure why something is slow; with consent it loads an engine for minutes
    GOLIVE_RUN = "golive.run"  # load an endpoint as many callers would, to see what it bears
    NOTIFICATIONS_MANAGE = "notifications.manage"  # what was said in attempts; send again, dismiss
    AUDIT_VIEW = "audit.view"
    CHANNELS_MANAGE = "channels.manage"  # where notifications go: mail servers, robots, webhooks and their secrets
    ACCOUNTS_MANAGE = "accounts.manage"  # accounts at providers and their keys
    AGENTS_MANAGE = "agents.manage"  # revoke an agent
    USERS_MANAGE = "users.manage"
    TOKENS_MANAGE = "tokens.manage"  # anybody's API tokens


_VIEWER: Final = frozenset(
    {
        Capability.FLEET_VIEW,
        Capability.EVENTS_VIEW,
        Capability.HEALTH_VIEW,
        Capability.PROFILE_EDIT,
        Capability.TOKENS_OWN,
    }
)
_OPERATOR: Final = _VIEWER | {
    Capability.SERVERS_MANAGE,
    Capability.JOIN_TOKENS_MANAGE,
    Capability.LEASES_MANAGE,
    Capability.ENDPOINTS_MANAGE,
    Capability.PROBES_MANAGE,
    Capability.ALERTS_MANAGE,
    Capability.GOLIVE_RUN,
    Capability.DIAGNOSES_RUN,
    Capability.NOTIFICATIONS_MANAGE,
    Capability.AUDIT_VIEW,
}
_ADMIN: Final = _OPERATOR | {
    Capability.CHANNELS_MANAGE,
    Capability.ACCOUNTS_MANAGE,
    Capability.AGENTS_MANAGE,
    Capability.USERS_MANAGE,
    Capability.TOKENS_MANAGE,
}

ROLE_CAPABILITIES: Final[dict[Role, frozenset[Capability]]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.ADMIN: _ADMIN,
}
ROLE_ORDER: Final = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)


def has_capability(actor_role: str, capability: Capability) -> bool:
    """Say whether the role has the capability; an unknown role (a stranger's is empty) has none."""
    try:
        return capability in ROLE_CAPABILITIES[Role(actor_role)]
    except ValueError:
        return False


def lower_role(first: str, second: str) -> Role:
    """Return the lesser of two roles: what a token may do is bounded by its scope and by its owner's role."""
    return min(Role(first), Role(second), key=ROLE_ORDER.index)


def least_role(capability: Capability) -> Role:
    """Return the lowest role that has the capability, for the sentence of a refusal."""
    return next(role for role in ROLE_ORDER if capability in ROLE_CAPABILITIES[role])
