"""Vast.ai's API over HTTP: bearer key, errors in several forms and under HTTP 200 too, pages by token, limits by endpoint."""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import httpx

from fleet.providers.base import reason_of
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    ProviderError,
    Refused,
    Throttled,
)
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_for_status, retry_after_seconds, sentence
from fleet.providers.reading import whole
from fleet.reasons import Reason
from panel.core.clock import now

BASE_URL: Final = "https://console.vast.ai/api"
# The shortest interval between two calls, as the API names it in its refusals; it counts by endpoint and caller.
SPACING: Final = Spacing({"": 1.0, "one": 2.0, "search": 2.0, "end": 3.0, "order": 4.5})
PAGE: Final = 25
CHARGES_PAGE: Final = 500
OFFERS_PAGE: Final = 1500
MAX_PAGES: Final = 400

_THRESHOLD: Final = re.compile(r"threshold=(\d+(?:\.\d+)?)")
_NO_KEY: Final = ("auth_error", "invalid user key", "requires login")
_NOT_THERE: Final = ("no_such_instance", "invalid instance_id", "instance not found", "not_found")
_REASONS: Final = (
    ("no_such_ask", Reason.NO_CAPACITY),
    ("is not available", Reason.NO_CAPACITY),
    ("no longer available", Reason.NO_CAPACITY),
    ("invalid_price", Reason.PRICE_ABOVE_MAX),
    ("no_ssh_key", Reason.REQUEST_REFUSED),
    ("is not your own", Reason.REQUEST_REFUSED),
    ("credit", Reason.NO_BALANCE),
    ("balance", Reason.NO_BALANCE),
)


class VastClient:
    """The calls that the adapter needs; answers are the JSON bodies, or what stands under their one key."""

    def __init__(self, api_key: str, *, account: str, transport: httpx.BaseTransport | None) -> None:
        self._http = ProviderHttp(
            BASE_URL,
            account=account,
            headers={"Authorization": f"Bearer {api_key}"},
            spacing=SPACING,
            transport=transport,
        )

    def user(self) -> dict[str, Any]:
        """Return who the key belongs to."""
        found = self._get("/v0/users/current/")
        if isinstance(found, dict):
            return found
        raise NotUnderstood("Vast.ai's answer is no user.")

    def instances(self, *, label: str | None = None) -> list[dict[str, Any]]:
        """Return all instances, or those with a label, all pages."""
        query = {"limit": str(PAGE)}
        if label is not None:
            query["select_filters"] = json.dumps({"label": {"eq": label}})
        return self._pages("/v1/instances/", query, "instances", count="total_instances")

    def instance(self, instance_id: str) -> dict[str, Any]:
        """Return one instance. Raises NotThere, also for the null that the API gives for an id that it does not know."""
        found = self._get(f"/v0/instances/{_id(instance_id)}/", spaced_as="one")
        if not isinstance(found, dict) or "instances" not in found:
            raise NotUnderstood("Vast.ai's answer is no instance.")
        one = found["instances"]  # one instance under a plural name
        if not one:
            raise NotThere("Vast.ai does not know this instance.")
        if isinstance(one, dict) and whole(one.get("id")) is not None:
            return one
        raise NotUnderstood("Vast.ai's answer is no instance.")

    def offers(self, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return all offers that pass the filters: page after page by id, because the search has no pages of its own."""
        found: list[dict[str, Any]] = []
        last = 0
        for _page in range(MAX_PAGES):
            body = {**filters, "order": [["id", "asc"]], "limit": OFFERS_PAGE, "id": {"gt": last}}
            page = _list(self._send("POST", "/v0/bundles/", body, spaced_as="search"), "offers")
            found += page
            if len(page) < OFFERS_PAGE:
                return found
            before, last = last, max(whole(offer.get("id")) or 0 for offer in page)
            if last <= before:
                break
        raise NotUnderstood("Vast.ai's offers do not come to an end.")

    def order(self, offer_id: int, body: Mapping[str, Any]) -> str:
        """Accept an offer and return the instance's id.

        A refusal can come with an instance that was made nevertheless, stopped, whose disk is billed: it is ended at once,
        and OutcomeUnknown is raised when that fails.
        """
        answer = self._http.send("PUT", f"/v0/asks/{offer_id}/", is_write=True, json_body=body, spaced_as="order")
        found = answer.json_or_none()
        contract = whole(found.get("new_contract")) if isinstance(found, dict) else None
        try:
            _check(answer, is_write=True)
        except ProviderError:
            if contract is not None:
                self._end_leftover(str(contract))
            raise
        if contract is None:
            raise OutcomeUnknown("Vast.ai's answer does not name the instance that it made.")
        return str(contract)

    def _end_leftover(self, instance_id: str) -> None:
        try:
            self.end(instance_id)
        except NotThere:
            return
        except ProviderError as error:
            raise OutcomeUnknown(f"Vast.ai refused the order and made instance {instance_id} all the same.") from error

    def change(self, instance_id: str, body: Mapping[str, Any]) -> None:
        """Change an instance's state or label. Raises NotThere."""
        self._send("PUT", f"/v0/instances/{_id(instance_id)}/", body, is_write=True)

    def reboot(self, instance_id: str) -> None:
        """Stop and start an instance's container, keeping its cards. Raises NotThere."""
        self._send("PUT", f"/v0/instances/reboot/{_id(instance_id)}/", None, is_write=True)

    def end(self, instance_id: str) -> None:
        """End an instance and its disk. Raises NotThere."""
        self._send("DELETE", f"/v0/instances/{_id(instance_id)}/", None, is_write=True, spaced_as="end")

    def charges(self, start: datetime, end: datetime) -> list[dict[str, Any]]:
        """Return what was billed in [start, end), one line a contract, all pages."""
        day = {"gte": int(start.timestamp()), "lte": int(end.timestamp()) - 1}
        query = {"select_filters": json.dumps({"day": day}), "format": "table", "limit": str(CHARGES_PAGE)}
        return self._pages("/v0/charges/", query, "results", count="total")

    def _pages(self, path: str, query: Mapping[str, str], key: str, *, count: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token, seen = "", {""}
        for _page in range(MAX_PAGES):
            body = self._get(path, **query, **({"after_token": token} if token else {}))
            # An account without machines may get null for the list; anything else without one is not understood.
            if not (isinstance(body, dict) and body.get(key, 0) is None and not body.get(count)):
                found += _list(body, key)
            token = str(body.get("next_token") or "")
            if not token:
                return found
            if token in seen:
                break
            seen.add(token)
        raise NotUnderstood(f"Vast.ai's pages of {key} do not come to an end.")

    def _get(self, path: str, *, spaced_as: str = "", **params: str) -> Any:
        answer = self._http.send("GET", path, params=params or None, spaced_as=spaced_as)
        _check(answer, is_write=False)
        return answer.json()

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, is_write: bool = False, spaced_as: str = ""
    ) -> Any:
        answer = self._http.send(method, path, is_write=is_write, json_body=body, spaced_as=spaced_as)
        _check(answer, is_write=is_write)
        return answer.json_or_none() if is_write else answer.json()


def _check(answer: Answer, *, is_write: bool) -> None:
    """Raise what an answer says, also one of HTTP 200 that says that it is no success."""
    body = answer.json_or_none()
    if answer.status == 429:
        raise _throttled(answer, body)
    if answer.status < 400 and not (isinstance(body, dict) and body.get("success") is False):
        return
    parts = body if isinstance(body, dict) else {}
    code = str(parts.get("error") or "")
    words = str(
        next((parts[key] for key in ("msg", "message", "detail", "error") if parts.get(key)), answer.text[:200])
    )
    told = f"{code} {words}".lower()
    if answer.status < 500 and not answer.is_page:
        if any(sign in told for sign in _NO_KEY):
            raise AccessRefused(sentence(words), raw_code=code)
        if any(sign in told for sign in _NOT_THERE):
            raise NotThere(sentence(words), raw_code=code)
        reason = reason_of(told, _REASONS, Reason.NONE)
        if reason != Reason.NONE or answer.status < 400:
            raise Refused(sentence(words), reason=reason or Reason.REQUEST_REFUSED, raw_code=code)
    raise_for_status(answer, words, is_write=is_write, raw_code=code or str(answer.status))


def _throttled(answer: Answer, body: Any) -> Throttled:
    """Return what a 429 means: an interval that was not kept, or a day's quota of searches, which ends at midnight UTC."""
    parts = body if isinstance(body, dict) else {}
    code = str(parts.get("error") or "429")
    words = str(parts.get("detail") or parts.get("msg") or answer.text[:200])
    if code == "search_quota_exceeded":
        at = now()
        midnight = at.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        return Throttled(sentence(words), raw_code=code, retry_after_seconds=(midnight - at).total_seconds())
    wait = retry_after_seconds(answer.headers)
    if wait is None and (told := _THRESHOLD.search(words)):
        wait = float(told[1])
    return Throttled(sentence(words), raw_code=code, retry_after_seconds=wait)


def _id(instance_id: str) -> int:
    """Return an instance's id as it stands in a path. Raises NotThere for what never was one."""
    number = whole(instance_id)
    if number is None or number < 0:
        raise NotThere(f"{instance_id[:40]!r} is no instance of Vast.ai.")
    return number


def _list(body: Any, key: str) -> list[dict[str, Any]]:
    if isinstance(body, dict) and isinstance(body.get(key), list):
        return [entry for entry in body[key] if isinstance(entry, dict)]
    raise NotUnderstood(f"Vast.ai's answer has no list of {key}.")
