"""What this web process answers, counted for /metrics: requests by method and status, and how long they took."""

import time
from collections.abc import Callable
from typing import Any, Final

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.process_collector import ProcessCollector

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Handler = Callable[[HttpRequest], Any]

registry: Final = CollectorRegistry()
ProcessCollector(namespace="fleetdeck_web", registry=registry)
requests: Final = Counter(
    "fleetdeck_web_requests", "Requests that Django answered.", labelnames=("method", "status"), registry=registry
)
durations: Final = Histogram(
    "fleetdeck_web_request_seconds", "How long they took.", labelnames=("method",), buckets=BUCKETS, registry=registry
)


def _count(request: HttpRequest, response: HttpResponseBase, began: float) -> None:
    method = request.method if request.method in METHODS else "other"
    requests.labels(method, str(response.status_code)).inc()
    durations.labels(method).observe(time.perf_counter() - began)


@sync_and_async_middleware
def counting_middleware(get_response: Handler) -> Handler:
    """Count every request that comes by."""
    if iscoroutinefunction(get_response):

        async def count_async(request: HttpRequest) -> Any:
            began = time.perf_counter()
            response = await get_response(request)
            _count(request, response, began)
            return response

        return count_async

    def count_sync(request: HttpRequest) -> Any:
        began = time.perf_counter()
        response = get_response(request)
        _count(request, response, began)
        return response

    return count_sync
