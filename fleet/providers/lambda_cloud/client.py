"""Lambda Cloud's API v1 over HTTP: bearer key, one error envelope with typed codes, no pages, one launch in 12 seconds."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from fleet.providers.errors import AccessRefused, NotThere, NotUnderstood, Refused
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_for_status, sentence
from fleet.reasons import Reason

BASE_URL: Final = "https://cloud.lambda.ai/api/v1"
SPACING: Final = Spacing({"": 1.0, "launch": 12.0})

# Codes say what a status does not: no capacity is a 400, an address that the bill cannot go to a 403.
REFUSALS: Final[Mapping[str, Reason]] = {
    "instance-operations/launch/insufficient-capacity": Reason.NO_CAPACITY,
    "instance-operations/launch/file-system-in-wrong-region": Reason.REQUEST_REFUSED,
    "global/quota-exceeded": Reason.NO_QUOTA,
    "global/invalid-parameters": Reason.REQUEST_REFUSED,
    "global/invalid-address": Reason.REQUEST_REFUSED,
    "global/duplicate": Reason.REQUEST_REFUSED,
    "global/conflict": Reason.NOT_ALLOWED_NOW,
}
ACCESS: Final[Mapping[str, Reason]] = {
    "global/invalid-api-key": Reason.AUTH_FAILED,
    "global/account-inactive": Reason.PERMISSION_MISSING,
    "global/forbidden": Reason.PERMISSION_MISSING,
}
MISSING: Final = frozenset({"global/object-does-not-exist", "global/not-found"})


class LambdaClient:
    """The calls that the adapter needs; answers are what stands under `data`."""

    def __init__(self, api_key: str, *, account: str, transport: httpx.BaseTransport | None) -> None:
        self._http = ProviderHttp(
            BASE_URL,
            account=account,
            headers={"Authorization": f"Bearer {api_key}"},
            spacing=SPACING,
            transport=transport,
        )

    def instances(self) -> list[dict[str, Any]]:
        """Return all instances; the API has no pages."""
        return _objects(self._get("/instances"), "instances")

    def instance(self, instance_id: str) -> dict[str, Any]:
        """Return one instance. Raises NotThere."""
        found = self._get(f"/instances/{quote(instance_id, safe='')}")
        if isinstance(found, dict) and isinstance(found.get("id"), str):
            return found
        raise NotUnderstood("Lambda's answer is no instance.")

    def instance_types(self) -> list[dict[str, Any]]:
        """Return the types with the regions that have one free; the API gives them as a map by name."""
        found = self._get("/instance-types")
        if not isinstance(found, dict):
            raise NotUnderstood("Lambda's answer has no map of instance types.")
        return [entry for entry in found.values() if isinstance(entry, dict)]

    def ssh_keys(self) -> list[dict[str, Any]]:
        """Return the account's SSH keys."""
        return _objects(self._get("/ssh-keys"), "SSH keys")

    def images(self) -> list[dict[str, Any]]:
        """Return the images of all regions."""
        return _objects(self._get("/images"), "images")

    def launch(self, body: Mapping[str, Any]) -> str:
        """Launch one instance and return its id. Raises NotUnderstood when the answer names none."""
        data = self._write("/instance-operations/launch", body, spaced_as="launch")
        ids = data.get("instance_ids") if isinstance(data, dict) else None
        if isinstance(ids, list) and len(ids) == 1 and isinstance(ids[0], str):
            return ids[0]
        raise NotUnderstood("Lambda's answer does not name the instance that it launched.")

    def act(self, action: str, instance_id: str) -> None:
        """Send restart or terminate. Raises NotThere."""
        self._write(f"/instance-operations/{action}", {"instance_ids": [instance_id]})

    def _get(self, path: str) -> Any:
        answer = self._http.send("GET", path)
        _check(answer, is_write=False)
        body = answer.json()
        if isinstance(body, dict) and "data" in body:
            return body["data"]
        raise NotUnderstood("Lambda's answer has no data.")

    def _write(self, path: str, body: Mapping[str, Any], *, spaced_as: str = "") -> Any:
        answer = self._http.send("POST", path, is_write=True, json_body=body, spaced_as=spaced_as)
        _check(answer, is_write=True)
        whole = answer.json_or_none()
        return whole.get("data") if isinstance(whole, dict) else None


def _check(answer: Answer, *, is_write: bool) -> None:
    """Raise what the error envelope says; its code comes before the status."""
    if answer.status < 400:
        return
    body = answer.json_or_none()
    error = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    code = str(error.get("code") or "")
    words = " ".join(str(error[key]) for key in ("message", "suggestion") if error.get(key)) or answer.text[:200]
    if code in ACCESS:
        raise AccessRefused(sentence(words), reason=ACCESS[code], raw_code=code)
    if code in MISSING:
        raise NotThere(sentence(words), raw_code=code)
    if code in REFUSALS:
        raise Refused(sentence(words), reason=REFUSALS[code], raw_code=code)
    raise_for_status(answer, words, is_write=is_write, raw_code=code or str(answer.status))


def _objects(found: Any, what: str) -> list[dict[str, Any]]:
    if isinstance(found, list):
        return [entry for entry in found if isinstance(entry, dict)]
    raise NotUnderstood(f"Lambda's answer has no list of {what}.")
