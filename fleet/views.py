"""What agents ask of the panel beside their reports and assignments: to join, to leave."""

import contextlib
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import msgspec
import structlog
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from redis.exceptions import RedisError

from fleet.advice import driver_advice
from fleet.agent import wire
from fleet.enums import ServerState
from fleet.selectors import join_live
from fleet.services.agents import AgentIdentity, agent_identify, agent_leave
from fleet.services.joining import join_token_authenticate, server_join
from panel.core.addresses import client_address
from panel.core.errors import FleetdeckError, InvalidInput, NotAuthenticated, RateLimited, TooLarge
from panel.core.rates import Rate, count_attempt, refund_attempt

BODY_LIMIT: Final = 16_384
# Of refused attempts: a rack of machines behind one address may join at once.
JOIN_RATE: Final = Rate(limit=60, period_seconds=60)
MSGPACK: Final = "application/msgpack"
_MSGPACK_TYPES: Final = frozenset({MSGPACK, "application/x-msgpack", "application/vnd.msgpack", wire.CONTENT_TYPE})

log = structlog.get_logger(__name__)
P = ParamSpec("P")
Body = TypeVar("Body")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def _speaks_msgpack(header: str) -> bool:
    return any(part.partition(";")[0].strip().lower() in _MSGPACK_TYPES for part in header.split(","))


def answer(request: HttpRequest, body: Any, *, status: int = 200) -> HttpResponse:
    """Return a struct as msgpack to an agent that asks for it, or sent it; as JSON to everybody else."""
    accepted = request.headers.get("Accept", "")
    wants_msgpack = _speaks_msgpack(accepted) or (
        accepted in {"", "*/*"} and _speaks_msgpack(request.headers.get("Content-Type", ""))
    )
    encoded = msgspec.msgpack.encode(body) if wants_msgpack else msgspec.json.encode(body)
    return HttpResponse(encoded, status=status, content_type=MSGPACK if wants_msgpack else "application/json")


def refusal(request: HttpRequest, error: FleetdeckError) -> HttpResponse:
    """Return what is wrong as `wire.Refusal`."""
    response = answer(request, wire.Refusal(code=error.code, message=error.message), status=error.status)
    if isinstance(error, NotAuthenticated):
        response["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited):
        response["Retry-After"] = str(math.ceil(error.retry_after_seconds))
    return response


def agent_endpoint(method: str) -> Callable[[View[P]], View[P]]:
    """Mark a view of agents: one method, no CSRF (there is no cookie to abuse), errors as `wire.Refusal`."""

    def decorate(view: View[P]) -> View[P]:
        @login_not_required  # the agent's own token is asked for instead
        @csrf_exempt
        @never_cache
        @wraps(view)
        def inner(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if request.method != method:
                body = wire.Refusal(code="method_not_allowed", message=_("This address answers %s only.") % method)
                response = answer(request, body, status=405)
                response["Allow"] = method
                return response
            try:
                return view(request, *args, **kwargs)
            except FleetdeckError as error:
                return refusal(request, error)

        return inner

    return decorate


def read_body(request: HttpRequest, struct: type[Body], *, limit: int = BODY_LIMIT) -> Body:
    """Decode the body, JSON or msgpack by its content type. Raises TooLarge or InvalidInput."""
    raw = request.read(limit + 1)
    if len(raw) > limit:
        raise TooLarge(_("The body is larger than %(limit)s bytes.") % {"limit": limit})
    decode = msgspec.msgpack.decode if _speaks_msgpack(request.headers.get("Content-Type", "")) else msgspec.json.decode
    try:
        return decode(raw, type=struct)
    except msgspec.MsgspecError as error:
        raise InvalidInput(_("The body cannot be read: %(error)s") % {"error": error}) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(_("The body cannot be read: %(error)s") % {"error": error}) from None


def _bearer(request: HttpRequest) -> str:
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def bearer_agent(request: HttpRequest) -> AgentIdentity:
    """Return the agent whose token the request carries. Raises NotAuthenticated."""
    return agent_identify(token=_bearer(request))


def _limit_joins(address: str) -> None:
    """Raise RateLimited for an address that asks too often. Without Valkey the 256 bits of a token must do."""
    try:
        wait = count_attempt("join", address, JOIN_RATE)
    except RedisError as error:
        log.warning("fleet.join_not_counted", error=str(error))
        return
    if wait is not None:
        raise RateLimited(
            _("Too many machines from this address want to join. Wait a minute."), retry_after_seconds=wait
        )


def _forgive_join(address: str) -> None:
    """Take a join that went well out of the count."""
    with contextlib.suppress(RedisError):
        refund_attempt("join", address, JOIN_RATE)


@agent_endpoint("POST")
def join(request: HttpRequest) -> HttpResponse:
    """Use up a join token; answer the agent's own token, which is shown this once."""
    address = client_address(request)
    _limit_joins(address or "unknown")
    body = read_body(request, wire.JoinRequest)
    joined = server_join(request=body, address=address)
    _forgive_join(address or "unknown")
    return answer(request, joined, status=201)


@agent_endpoint("GET")
def join_status(request: HttpRequest) -> HttpResponse:
    """Answer how far the join of this join token has come, for the installer that waits for the first report."""
    row = join_token_authenticate(token=_bearer(request))
    server = row.server if row.used_at is not None else None
    facts = join_live(row)
    advice = driver_advice(facts["driver_state"]) if facts["driver_state"] else None
    words = advice.as_text() if advice else {"sentence": "", "next_step": ""}
    answered = {
        **facts,
        "server_name": server.name if server else row.name,
        "has_reported": server is not None and server.state not in {ServerState.PENDING, ServerState.JOINING},
        "driver_sentence": words["sentence"],
        "next_step": words["next_step"],
    }
    return JsonResponse(answered)


@agent_endpoint("POST")
def leave(request: HttpRequest) -> HttpResponse:
    """Retire the agent's server; its token ends with this answer."""
    identity = bearer_agent(request)
    agent_leave(agent_id=identity.agent_id, address=client_address(request))
    return HttpResponse(status=204)
