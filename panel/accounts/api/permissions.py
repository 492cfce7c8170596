"""Authorisation of the API: every view names the capability that each of its actions needs; silence is a refusal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from panel.accounts.audit import Actor
from panel.accounts.capabilities import Capability, has_capability, least_role

if TYPE_CHECKING:  # the framework's views import this module for their defaults
    from rest_framework.views import APIView

CapabilityTable = Capability | Mapping[str, Capability]


def required_capability(view: "APIView", request: Request) -> Capability | None:
    """Return what the view's `capability` asks for the action at hand (for a plain APIView: the method, lower case)."""
    table: CapabilityTable | None = getattr(view, "capability", None)
    if table is None or isinstance(table, Capability):
        return table
    return table.get(getattr(view, "action", None) or (request.method or "").lower())


class HasCapability(BasePermission):
    """Allows what the row of the caller's role has."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Check the caller's role, bounded by the token's scope. Raises PermissionDenied naming the role needed."""
        actor = Actor.from_request(request)
        if actor.kind == "stranger":
            return False
        capability = required_capability(view, request)
        if capability is None:
            return False
        if has_capability(actor.role, capability):
            return True
        role = least_role(capability).label
        raise PermissionDenied(_("This needs the role “%(role)s” or a higher one.") % {"role": role})
