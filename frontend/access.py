"""Who may open a page: one decorator, by capability. That strangers log in first is the accounts' middleware's part."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from panel.accounts.capabilities import Capability, has_capability, least_role
from panel.accounts.models import User
from panel.core.errors import InvalidInput, PermissionRefused

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


class PageRequest(HttpRequest):
    """A request that passed `page`: its user is a person who is logged in."""

    user: User


def role_of(request: HttpRequest) -> str:
    """Return the role of who asks; a stranger's is empty."""
    return request.user.role if isinstance(request.user, User) else ""


def require(request: HttpRequest, capability: Capability) -> None:
    """Raise PermissionRefused, with the role that is needed, unless the person may."""
    if not has_capability(role_of(request), capability):
        raise PermissionRefused(_("This needs the role “%(role)s”.") % {"role": least_role(capability).label})


def refuse_unstorable(request: HttpRequest) -> None:
    """Raise InvalidInput for text in an address or a form that no column of the database could hold or be compared with."""
    values = (value for given in (request.GET, request.POST) for _name, texts in given.lists() for value in texts)
    if any("\x00" in str(value) for value in values):
        raise InvalidInput(_("Text must not hold NUL or half of a surrogate pair."))


def page(capability: Capability) -> Callable[[Callable[Concatenate[PageRequest, P], HttpResponseBase]], View[P]]:
    """Let only people with the capability pass."""

    def decorate(view: Callable[Concatenate[PageRequest, P], HttpResponseBase]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            require(request, capability)
            refuse_unstorable(request)
            return view(request, *args, **kwargs)  # type: ignore[arg-type]  # a person: `require` refused the rest

        guarded.capability = capability  # type: ignore[attr-defined]  # what the tests of access compare with the answers
        return guarded

    return decorate
