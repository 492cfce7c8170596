"""HTTP to a provider: bounded, spaced, exact decimals, and every failure one of fleet.providers.errors."""

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    ProviderError,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.reasons import Reason
from panel.core import egress
from panel.core.clock import now
from panel.core.redaction import redact_text

MAX_WAIT_SECONDS: Final = 2.0  # a longer wait for our turn becomes Throttled, and the next round asks again
MAX_RETRY_AFTER_SECONDS: Final = 3600.0
MAX_SENTENCE: Final = 300
_NO_KEY: Final = "The key has characters that no key has; was something else pasted?"
_RATE_LIMIT_T: Final = re.compile(r"t=(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the status, the headers, and the body as text and, when it is JSON, with Decimal for every fraction."""

    status: int
    headers: httpx.Headers
    text: str

    @property
    def is_page(self) -> bool:
        """Say whether this is a page for people, so not the provider's API but a proxy before it."""
        return self.text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))

    def json(self) -> Any:
        """Return the body. Raises NotUnderstood when it is no JSON."""
        try:
            return json.loads(self.text, parse_float=Decimal)
        except (ValueError, RecursionError) as error:
            raise NotUnderstood(f"The provider answered {self.status} with something that is no JSON.") from error

    def json_or_none(self) -> Any:
        """Return the body, None when it is no JSON (a proxy's page, plain text)."""
        try:
            return self.json()
        except NotUnderstood:
            return None


class Spacing:
    """At least so many seconds between two calls of a kind within this process: `{"": 1.0, "launch": 12.0}`.

    Other processes are held off by the provider's own 429, which every caller understands.
    """

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        self._next: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def wait_for_turn(self, account: str, kind: str = "") -> None:
        """Wait until a call of this kind may go out. Raises Throttled when that takes longer than two seconds."""
        interval = self._seconds.get(kind, self._seconds.get("", 0.0))
        if not interval:
            return
        with self._lock:
            at = time.monotonic()
            turn = max(at, self._next.get((account, kind), at))
            wait = turn - at
            if wait > MAX_WAIT_SECONDS:
                raise Throttled("The panel spaces its calls to this provider.", retry_after_seconds=wait)
            self._next[account, kind] = turn + interval
        time.sleep(wait)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long a 429 or 503 asks us to wait: Retry-After, else RateLimit `t=`, else ratelimit-reset; at most an hour."""
    seconds = _retry_after(headers.get("retry-after", ""))
    if seconds is None and (match := _RATE_LIMIT_T.search(headers.get("ratelimit", ""))):
        seconds = float(match[1])
    if seconds is None and (reset := headers.get("ratelimit-reset", "")).isdigit():
        seconds = float(reset) - now().timestamp() if int(reset) > 10**9 else float(reset)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _retry_after(text: str) -> float | None:
    text = text.strip()
    if text.replace(".", "", 1).isdigit():
        return float(text)
    try:
        return (parsedate_to_datetime(text) - now()).total_seconds()
    except (TypeError, ValueError):
        return None


def sentence(text: str) -> str:
    """Return a provider's words as they may be stored and shown: one line, short, without anything secret, no page of HTML."""
    if text.lstrip().startswith("<"):
        return ""
    return redact_text(" ".join(text.split()))[:MAX_SENTENCE]


class ProviderHttp:
    """The connection of one account. `send` returns answers below 400; the adapter's client tells errors inside a 200.

    account: a name for spacing. headers: sent with every call; credentials stand there or in what `sign` adds.
    """

    def __init__(
        self,
        base_url: str,
        *,
        account: str = "",
        headers: Mapping[str, str] | None = None,
        spacing: Spacing | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._account = account
        self._spacing = spacing
        try:
            self._client = egress.client(transport=transport, headers=dict(headers or {}))
        except UnicodeEncodeError:  # said without the key, which stands in the exception
            raise AccessRefused(_NO_KEY) from None

    def send(
        self,
        method: str,
        path: str,
        *,
        is_write: bool = False,
        spaced_as: str = "",
        params: Mapping[str, Any] | None = None,
        json_body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request and return the answer whatever its status.

        is_write: it changes something at the provider, so an answer that is lost is OutcomeUnknown, not Unavailable.
        path: below the base URL, or a whole URL. Raises Unavailable, OutcomeUnknown, Throttled (spacing).
        """
        if self._spacing is not None:
            self._spacing.wait_for_turn(self._account, spaced_as)
        url = path if path.startswith(("https://", "http://")) else self._base_url + path
        options: dict[str, Any] = {"params": params, "content": content, "headers": dict(headers or {})}
        if json_body is not None:
            options["json"] = json_body
        try:
            request = self._client.build_request(method, url, **options)
        except UnicodeEncodeError:
            raise AccessRefused(_NO_KEY) from None
        try:
            response = egress.send_bounded(self._client, request)
        except httpx.HTTPError as error:
            raise _transport_failure(error, is_write=is_write) from error
        return Answer(response.status_code, response.headers, response.text)


def _transport_failure(error: httpx.HTTPError, *, is_write: bool) -> ProviderError:
    """Return what a failed exchange means: before the request went out nothing was done, after it nobody knows."""
    if isinstance(error.__cause__, egress.AddressRefused):
        return Refused(sentence(str(error)), reason=Reason.ADDRESS_REFUSED, permanent=True)
    if is_write and not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
        return OutcomeUnknown(f"The answer was lost ({type(error).__name__}).")
    return Unavailable(f"No answer ({type(error).__name__}).")


def raise_for_status(answer: Answer, message: str, *, is_write: bool, raw_code: str = "") -> None:
    """Raise what an HTTP status of 400 and more means at most providers; return below that.

    message: the provider's words. A client calls this after it has looked for codes that say more. A 5xx after a write
    may come after the deed: OutcomeUnknown.
    """
    status = answer.status
    if status < 400:
        return
    words = sentence(message) or f"HTTP {status}"
    if answer.is_page and status != 429:
        # Somebody in between speaks: its 403 is not the key's, and its 404 does not say that a machine is gone.
        status = 502
    if status == 401:
        raise AccessRefused(words, raw_code=raw_code)
    if status == 403:
        raise AccessRefused(words, reason=Reason.PERMISSION_MISSING, raw_code=raw_code)
    if status in {404, 410}:
        raise NotThere(words, raw_code=raw_code)
    if status == 402:
        raise Refused(words, reason=Reason.NO_BALANCE, raw_code=raw_code)
    if status == 409:
        raise Refused(words, reason=Reason.NOT_ALLOWED_NOW, raw_code=raw_code)
    if status == 429:
        raise Throttled(words, raw_code=raw_code, retry_after_seconds=retry_after_seconds(answer.headers))
    if status < 500:
        raise Refused(words, raw_code=raw_code)
    if is_write:
        raise OutcomeUnknown(words, raw_code=raw_code)
    raise Unavailable(words, raw_code=raw_code, retry_after_seconds=retry_after_seconds(answer.headers))


def raise_foreign(answer: Answer, *, is_write: bool) -> None:
    """Raise what an answer of 400 and more means that is not in the provider's own form; return below that.

    For providers whose every error has an envelope: without it somebody in between speaks, so that no status says anything
    of the key or of a machine, except that we come too often.
    """
    if answer.status < 400:
        return
    words = sentence(answer.text[:200]) or f"HTTP {answer.status}"
    wait = retry_after_seconds(answer.headers)
    if answer.status == 429:
        raise Throttled(words, retry_after_seconds=wait)
    if is_write:
        raise OutcomeUnknown(words)
    raise Unavailable(words, retry_after_seconds=wait)
