"""`/healthz` and `/readyz`, answered before everything else: a probe needs no session, no host name, no redirect to TLS."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.decorators import sync_and_async_middleware

from panel.health.readiness import OK, readiness


def healthz() -> HttpResponse:
    """Say that this process answers."""
    return JsonResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})


def readyz() -> HttpResponse:
    """Say whether all that the panel needs is there: 200, or 503 with the part that is not."""
    parts = readiness()
    is_ready = all(answer == OK for answer in parts.values())
    return JsonResponse(
        {"status": "ready" if is_ready else "not_ready", "checks": parts},
        status=200 if is_ready else 503,
        headers={"Cache-Control": "no-store"},
    )


ANSWERS: dict[str, Callable[[], HttpResponse]] = {"/healthz": healthz, "/readyz": readyz}
Handler = Callable[[HttpRequest], Any]


def _answer(request: HttpRequest) -> Callable[[], HttpResponse] | None:
    return ANSWERS.get(request.path) if request.method in ("GET", "HEAD") else None


@sync_and_async_middleware
def health_middleware(get_response: Handler) -> Handler:
    """Answer the two addresses; pass everything else on."""
    if iscoroutinefunction(get_response):

        async def answer_async(request: HttpRequest) -> Any:
            answer = _answer(request)
            if answer is None:
                return await get_response(request)
            return await sync_to_async(answer)()

        return answer_async

    def answer_sync(request: HttpRequest) -> Any:
        answer = _answer(request)
        return get_response(request) if answer is None else answer()

    return answer_sync
