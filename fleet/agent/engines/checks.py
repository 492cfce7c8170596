"""Requests to one engine: the real one whose answer makes it ready, its metrics page, its health page.

Each is bounded in time and size and says what came of it in plain values; nothing here remembers anything.
"""

import errno
import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx

from fleet.agent.engines.health import Outcome
from fleet.agent.engines.metrics import Counters, read_counters, read_queue
from fleet.agent.orders import ReplicaOrder

CONNECT_SECONDS: Final = 2.0
# The page of a busy engine may take seconds; that is no illness.
PAGE_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
MAX_PAGE_BYTES: Final = 8 << 20
_FINISHED: Final = frozenset({"length", "stop"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one real request. ms: until it counted, None when it did not."""

    outcome: Outcome
    detail: str = ""
    ms: float | None = None


def make_client() -> httpx.Client:
    """Return the client for all engines of this machine: no proxies, no redirects.

    No connection is kept: an open one would count as a caller when connections tell whether an engine is drained.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.Client(trust_env=False, follow_redirects=False, verify=False, limits=limits)  # noqa: S501 (plain HTTP only)


def address_of(order: ReplicaOrder) -> str:
    """Return where an engine is reached from this machine."""
    if order.host in {"", "0.0.0.0"}:  # noqa: S104 (what an engine listens on)
        return "127.0.0.1"
    return "::1" if order.host == "::" else order.host


def url_of(order: ReplicaOrder, path: str, port: int | None = None) -> str:
    """Return the address of one of an engine's pages."""
    host = address_of(order)
    return f"http://{f'[{host}]' if ':' in host else host}:{port or order.port}/{path.lstrip('/')}"


def ask(http: httpx.Client, order: ReplicaOrder, timeout_seconds: float) -> Answer:
    """Send the real request and say what came of it."""
    began = time.monotonic()
    try:
        if order.ready.kind == "tcp":
            problem = _connect(order, timeout_seconds)
        else:
            problem = _request(http, order, timeout_seconds, began + timeout_seconds)
    except httpx.TimeoutException as error:
        if isinstance(error, httpx.ConnectTimeout):
            return Answer("unanswered", "No connection within its time.")
        return Answer("unanswered", f"No answer within {timeout_seconds:g} s.")
    except (httpx.ConnectError, ConnectionRefusedError) as error:
        return Answer("refused", f"Nothing listens on port {order.port} ({error}).")
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        return Answer("error", f"{type(error).__name__}: {error}".rstrip(": "))
    if problem is not None:
        return problem
    return Answer("answered", ms=round((time.monotonic() - began) * 1000.0, 1))


def read_metrics(http: httpx.Client, order: ReplicaOrder, timeout_seconds: float = PAGE_SECONDS) -> Counters | None:
    """Return what the engine's page of metrics, or of its queue, says; None when it has none or it did not answer."""
    if not has_counters(order):
        return None
    is_queue = not order.metrics_path
    url = url_of(order, order.queue_path if is_queue else order.metrics_path, None if is_queue else order.metrics_port)
    try:
        with http.stream("GET", url, headers=_headers(order), timeout=_timeout(timeout_seconds)) as response:
            if response.status_code != 200:
                return None
            page = _bounded(response, MAX_PAGE_BYTES, time.monotonic() + timeout_seconds)
            return read_queue(page) if is_queue else read_counters(page)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None


def has_counters(order: ReplicaOrder) -> bool:
    """Say whether an engine tells how many requests it works on."""
    return bool(order.metrics_path or order.queue_path)


def read_health(http: httpx.Client, order: ReplicaOrder, timeout_seconds: float = PAGE_SECONDS) -> int | None:
    """Return the status of the engine's health page, 0 when it did not answer, None when it has none."""
    if not order.health_path:
        return None
    try:
        with http.stream(
            "GET", url_of(order, order.health_path), headers=_headers(order), timeout=_timeout(timeout_seconds)
        ) as response:
            return response.status_code
    except (httpx.HTTPError, httpx.InvalidURL):
        return 0


# ---- inside


def _timeout(seconds: float) -> httpx.Timeout:
    return httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


def _headers(order: ReplicaOrder) -> dict[str, str]:
    return {"Authorization": f"Bearer {order.upstream_key}"} if order.upstream_key else {}


def _connect(order: ReplicaOrder, timeout_seconds: float) -> Answer | None:
    try:
        with socket.create_connection((address_of(order), order.port), timeout=timeout_seconds):
            return None
    except TimeoutError:
        return Answer("unanswered", "No connection within its time.")


def _request(http: httpx.Client, order: ReplicaOrder, timeout_seconds: float, deadline: float) -> Answer | None:
    """Return what is wrong with the answer, None when it counts. Raises httpx' errors."""
    check = order.ready
    body: dict[str, Any] = {} if check.body is None else {"json": check.body}
    method = "POST" if check.kind == "stream" else check.method
    with http.stream(
        method, url_of(order, check.path), headers=_headers(order), timeout=_timeout(timeout_seconds), **body
    ) as response:
        if not response.is_success:
            said = _bounded(response, 2_000, deadline)
            outcome: Outcome = "full" if response.status_code == 429 else "error"
            return Answer(outcome, f"The answer to the check is {response.status_code}: {said[:300].strip()}")
        if check.kind == "stream":
            return _first_text(response, check.marker, deadline)
        text = _bounded(response, MAX_ANSWER_BYTES, deadline)
        if check.marker and check.marker not in text:
            return Answer("error", f"The answer to the check lacks the expected {check.marker!r}.")
    return None


def _first_text(response: httpx.Response, marker: str, deadline: float) -> Answer | None:
    """Read a stream until an event proves that something was generated. Raises httpx' errors."""
    text, size = "", 0
    for line in response.iter_lines():
        size += len(line)
        if time.monotonic() > deadline:
            return Answer("unanswered", "The stream began and no text came within its time.")
        if size > MAX_ANSWER_BYTES:
            break
        if not line.startswith("data:"):
            continue
        piece, is_finished = text_of_event(line[5:].strip())
        text += piece
        if marker in text and (text or is_finished):
            return None
    if marker and text:
        return Answer("error", f"The stream lacks the expected {marker!r}.")
    return Answer("error", "The stream ended without any text.")


def text_of_event(data: str) -> tuple[str, bool]:
    """Return (text, whether a generation ended here) of one event, in the forms of the engines that are known.

    A single token may have no text of its own (the start of a thought); an end for its length proves that it was generated.
    """
    try:
        event = json.loads(data)
    except ValueError:
        return "", False
    if not isinstance(event, dict):
        return "", False
    text, is_finished = "", False
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            delta = choice.get("delta")
            parts = delta if isinstance(delta, dict) else choice
            for name in ("content", "reasoning_content", "reasoning", "text"):
                text += parts[name] if isinstance(parts.get(name), str) else ""
            is_finished = is_finished or choice.get("finish_reason") in _FINISHED
    token = event.get("token")  # TGI's own stream
    if isinstance(token, dict) and isinstance(token.get("text"), str):
        text += token["text"]
    for name in ("content", "text_output", "text"):  # llama.cpp's, Triton's and SGLang's own
        text += event[name] if isinstance(event.get(name), str) else ""
    return text, is_finished


def _bounded(response: httpx.Response, max_bytes: int, deadline: float) -> str:
    """Return an answer's text, cut off at a size. Raises httpx.ReadTimeout after the deadline."""
    pieces, size = [], 0
    for piece in response.iter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size >= max_bytes:
            break
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("The answer took too long.")
    return b"".join(pieces)[:max_bytes].decode(errors="replace")


def is_port_taken(order: ReplicaOrder) -> bool:
    """Say whether something listens already where an engine is to listen."""
    host = order.host or "0.0.0.0"  # noqa: S104
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1" if host == "localhost" else host, order.port))
            probe.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE  # anything else the engine says better
    return False


def connections(order: ReplicaOrder, pid: int | None) -> int | None:
    """Return how many callers are connected to an engine's port, None when that cannot be seen.

    pid: of a process in the engine's network, which a container may have of its own.
    """
    port = order.port if order.port_of_container is None else order.port_of_container
    if order.port_of_container is not None and pid is None:
        return None
    seen, is_seen = 0, False
    base = "/proc/net" if pid is None else f"/proc/{pid}/net"
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"{base}/{name}") as table:  # noqa: PTH123 (a file of the kernel)
            is_seen = True
            for line in table.readlines()[1:]:
                fields = line.split()
                is_open = fields[3] == "01"
                seen += is_open and int(fields[1].rpartition(":")[2], 16) == port
    return seen if is_seen else None
