"""Verda's API v1 over HTTP: an OAuth2 token for client credentials, bare lists and bare ids, errors told by code or by words."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import httpx

from fleet.providers.base import reason_of
from fleet.providers.errors import AccessRefused, NotThere, NotUnderstood, Refused
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_for_status, sentence
from fleet.providers.reading import text, whole
from fleet.reasons import Reason
from panel.core.clock import now

BASE_URL: Final = "https://api.verda.com/v1"
SPACING: Final = Spacing({"": 0.2})  # the vendor publishes no limits
TOKEN_SLACK: Final = timedelta(seconds=30)

CODES: Final[Mapping[str, Reason]] = {
    "invalid_request": Reason.REQUEST_REFUSED,
    "forbidden_action": Reason.NOT_ALLOWED_NOW,
    "insufficient_funds": Reason.NO_BALANCE,
}
# Some cases have no code of their own.
_NOT_THERE: Final = ("invalid instance id", "discontinued instance")
_WORDS: Final = (
    ("capacity", Reason.NO_CAPACITY),
    ("not available", Reason.NO_CAPACITY),
    ("unavailable", Reason.NO_CAPACITY),
    ("out of stock", Reason.NO_CAPACITY),
    ("quota", Reason.NO_QUOTA),
    ("limit exceeded", Reason.NO_QUOTA),
    ("insufficient funds", Reason.NO_BALANCE),
    ("balance", Reason.NO_BALANCE),
)


class VerdaClient:
    """The calls that the adapter needs; answers are the JSON bodies."""

    def __init__(
        self, client_id: str, client_secret: str, *, account: str, transport: httpx.BaseTransport | None
    ) -> None:
        self._credentials = {"client_id": client_id, "client_secret": client_secret}
        self._http = ProviderHttp(BASE_URL, account=account, spacing=SPACING, transport=transport)
        self._token = ""
        self._token_until: datetime | None = None

    def instances(self) -> list[dict[str, Any]]:
        """Return all instances; the API has no pages."""
        return _list(self._get("/instances"), "instances")

    def instance(self, instance_id: str) -> dict[str, Any]:
        """Return one instance. Raises NotThere."""
        found = self._get(f"/instances/{quote(instance_id, safe='')}")
        if isinstance(found, dict) and isinstance(found.get("id"), str):
            return found
        raise NotUnderstood("Verda's answer is no instance.")

    def instance_types(self, currency: str) -> list[dict[str, Any]]:
        """Return the types with their prices for the whole machine."""
        return _list(self._get("/instance-types", currency=currency.lower()), "instance types")

    def available(self, *, is_spot: bool) -> set[tuple[str, str]]:
        """Return the (type, location) pairs that can be had now."""
        # The vendor's own SDKs write the parameter in two ways; each server knows one of them and the other is ignored.
        asked = "true" if is_spot else "false"
        found = _list(self._get("/instance-availability", is_spot=asked, isSpot=asked), "locations")
        return {
            (str(kind), text(location, "location_code"))
            for location in found
            for kind in location.get("availabilities") or []
        }

    def balance(self) -> dict[str, Any]:
        """Return the account's {amount, currency}."""
        found = self._get("/balance")
        if isinstance(found, dict):
            return found
        raise NotUnderstood("Verda's answer is no balance.")

    def ssh_keys(self) -> list[dict[str, Any]]:
        """Return the account's SSH keys."""
        return _list(self._get("/ssh-keys"), "SSH keys")

    def images(self) -> list[dict[str, Any]]:
        """Return the images of instances."""
        return _list(self._get("/images"), "images")

    def create_script(self, name: str, script: str) -> str:
        """Store a start-up script and return its id."""
        return _bare_id(self._write("POST", "/scripts", {"name": name, "script": script}))

    def delete_script(self, script_id: str) -> None:
        """Delete a start-up script. Raises NotThere."""
        self._write("DELETE", f"/scripts/{quote(script_id, safe='')}", None)

    def create_instance(self, body: Mapping[str, Any]) -> str:
        """Order an instance and return its id."""
        return _bare_id(self._write("POST", "/instances", body))

    def act(self, instance_id: str, action: str) -> None:
        """Send start, shutdown or delete. Raises NotThere.

        The answer lists what became of each instance; one of HTTP 207 contains a failure.
        """
        answer = self._write("PUT", "/instances", {"action": action, "id": [instance_id]})
        results = answer.json_or_none()
        for result in results if isinstance(results, list) else []:
            if isinstance(result, dict) and result.get("instanceId") == instance_id:
                _check_result(result)

    def _get(self, path: str, **params: str) -> Any:
        answer = self._authorised("GET", path, params=params or None)
        _check(answer, is_write=False)
        return answer.json()

    def _write(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        answer = self._authorised(method, path, is_write=True, json_body=body)
        _check(answer, is_write=True)
        return answer

    def _authorised(self, method: str, path: str, **options: Any) -> Answer:
        """Send a call with a token. A token that is refused before its time is replaced once: nothing was done with it."""
        had_token = self._has_token()
        answer = self._http.send(method, path, headers=self._bearer(), **options)
        if answer.status == 401 and had_token:
            self._token = ""
            answer = self._http.send(method, path, headers=self._bearer(), **options)
        return answer

    def _has_token(self) -> bool:
        return bool(self._token) and self._token_until is not None and now() < self._token_until

    def _bearer(self) -> dict[str, str]:
        if not self._has_token():
            answer = self._http.send(
                "POST", "/oauth2/token", json_body={"grant_type": "client_credentials", **self._credentials}
            )
            _check_token(answer)
            found = answer.json()
            self._token = text_of_token(found)
            lasts = timedelta(seconds=(whole(found.get("expires_in")) or 0))
            self._token_until = now() + lasts - TOKEN_SLACK
        return {"Authorization": f"Bearer {self._token}"}


def text_of_token(found: Any) -> str:
    """Return the access token of an answer. Raises NotUnderstood."""
    token = found.get("access_token") if isinstance(found, dict) else None
    if isinstance(token, str) and token:
        return token
    raise NotUnderstood("Verda's answer has no access token.")


def _check_token(answer: Answer) -> None:
    """Raise what a refusal of a token means: a 400 or 401 there is always about the credentials."""
    if answer.status in {400, 401} and not answer.is_page:
        code, words = _told(answer)
        raise AccessRefused(sentence(words), raw_code=code)
    _check(answer, is_write=False)


def _check(answer: Answer, *, is_write: bool) -> None:
    """Raise what the error body says; its code and words come before the status."""
    if answer.status < 400:
        return
    code, words = _told(answer)
    if answer.status < 500 and not answer.is_page:
        _raise_told(code, words)
    raise_for_status(answer, words, is_write=is_write, raw_code=code or str(answer.status))


def _check_result(result: Mapping[str, Any]) -> None:
    """Raise what one line of an action's answer says when it failed."""
    words, status = text(result, "error"), whole(result.get("statusCode")) or 0
    if not words and text(result, "status") != "error" and status < 400:
        return
    _raise_told("", words)
    if status == 404:
        raise NotThere(sentence(words), raw_code="404")
    raise Refused(sentence(words) or "Verda did not do it.", reason=Reason.NOT_ALLOWED_NOW, raw_code=str(status or ""))


def _told(answer: Answer) -> tuple[str, str]:
    body = answer.json_or_none()
    body = body if isinstance(body, dict) else {}
    return text(body, "code"), text(body, "message") or answer.text[:200]


def _raise_told(code: str, words: str) -> None:
    """Raise what a code and its words mean; return where they say nothing that is known."""
    lowered = words.lower()
    if code == "not_found" or any(sign in lowered for sign in _NOT_THERE):
        raise NotThere(sentence(words), raw_code=code)
    if code == "unauthorized_request":
        raise AccessRefused(sentence(words), raw_code=code)
    reason = reason_of(words, _WORDS, CODES.get(code, Reason.NONE))
    if reason != Reason.NONE:
        raise Refused(sentence(words), reason=reason, raw_code=code)


def _bare_id(answer: Answer) -> str:
    """Return the id that is the whole body, as text or as JSON. Raises NotUnderstood."""
    body = answer.json_or_none()
    found = text(body, "id") if isinstance(body, dict) else answer.text.strip().strip('"')
    if found and found.replace("-", "").isalnum():
        return found
    raise NotUnderstood("Verda's answer does not name what was created.")


def _list(body: Any, what: str) -> list[dict[str, Any]]:
    if isinstance(body, Sequence) and not isinstance(body, str):
        return [entry for entry in body if isinstance(entry, dict)]
    raise NotUnderstood(f"Verda's answer is no list of {what}.")
