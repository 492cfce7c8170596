"""AutoDL's developer API over HTTP: a bare token, errors inside HTTP 200, pages by index.

A GET takes its parameters in the query: with a JSON body, as the vendor's examples have it, it is refused.
"""

from collections.abc import Mapping
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
    Unavailable,
)
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_for_status, sentence
from fleet.providers.reading import text, whole
from fleet.reasons import Reason

PRO: Final = "/api/v1/dev/instance/pro"
PAGE_SIZE: Final = 50
MAX_PAGES: Final = 200
# The vendor publishes no limits; one call in a tenth of a second is what a quick hand does on its own pages.
SPACING: Final = Spacing({"": 0.1})

# There is no list of codes: one code stands for many refusals, so the sentence decides with it.
_REASONS: Final = (
    ("RecordNotFound", Reason.PROVIDER_DELETED),
    ("未查询到相关实例", Reason.PROVIDER_DELETED),
    ("TORealName", Reason.PERMISSION_MISSING),
    ("实名", Reason.PERMISSION_MISSING),
    ("访问权限", Reason.PERMISSION_MISSING),
    ("企业认证", Reason.PERMISSION_MISSING),
    ("Authorize", Reason.AUTH_FAILED),
    ("Unauthor", Reason.AUTH_FAILED),
    ("token", Reason.AUTH_FAILED),
    ("登录", Reason.AUTH_FAILED),
    ("鉴权", Reason.AUTH_FAILED),
    ("频繁", Reason.RATE_LIMITED),
    ("TooManyRequests", Reason.RATE_LIMITED),
    ("库存", Reason.NO_CAPACITY),
    ("资源不足", Reason.NO_CAPACITY),
    ("售罄", Reason.NO_CAPACITY),
    ("余额", Reason.NO_BALANCE),
    ("欠费", Reason.NO_BALANCE),
    ("配额", Reason.NO_QUOTA),
    ("上限", Reason.NO_QUOTA),
    ("关机状态", Reason.NOT_ALLOWED_NOW),
    ("先关机", Reason.NOT_ALLOWED_NOW),
    ("当前状态", Reason.NOT_ALLOWED_NOW),
)
_ERRORS: Final[Mapping[Reason, type[ProviderError]]] = {
    Reason.PROVIDER_DELETED: NotThere,
    Reason.RATE_LIMITED: Throttled,
}


class AutoDlClient:
    """The calls that the adapter needs; what is returned is the `data` of the envelope."""

    def __init__(self, token: str, *, base_url: str, account: str, transport: httpx.BaseTransport | None) -> None:
        self._http = ProviderHttp(
            base_url, account=account, headers={"Authorization": token}, spacing=SPACING, transport=transport
        )

    def balance(self) -> dict[str, Any]:
        """Return the wallet; amounts in thousandths of a yuan."""
        return _object(self._post("/api/v1/dev/wallet/balance", {}), "wallet")

    def instances(self) -> list[dict[str, Any]]:
        """Return all instances of the account."""
        return self._pages(f"{PRO}/list", "uuid")

    def images(self) -> list[dict[str, Any]]:
        """Return all images that the account has saved."""
        return self._pages(f"{PRO}/image/private/list", "image_uuid")

    def status(self, instance_id: str) -> str:
        """Return the word for an instance's state. Raises NotThere."""
        found = self._get(f"{PRO}/status", instance_id)
        if isinstance(found, str):
            return found.strip()
        raise NotUnderstood("AutoDL's answer is no state.")

    def snapshot(self, instance_id: str) -> dict[str, Any]:
        """Return what a running instance costs and where it is reached; passwords and tokens stand in it. Raises NotThere."""
        return _object(self._get(f"{PRO}/snapshot", instance_id), "instance")

    def create(self, body: Mapping[str, Any]) -> str:
        """Order an instance, which starts by itself; return its id."""
        found = self._write(f"{PRO}/create", body)
        if isinstance(found, str) and found.strip():
            return found.strip()
        raise OutcomeUnknown("AutoDL took the order and named no instance.")

    def power_on(self, instance_id: str) -> None:
        """Start an instance that is off, with its cards (the API knows no other way)."""
        self._write(f"{PRO}/power_on", {"instance_uuid": instance_id, "payload": "gpu"})

    def power_off(self, instance_id: str) -> None:
        """Switch an instance off."""
        self._write(f"{PRO}/power_off", {"instance_uuid": instance_id})

    def release(self, instance_id: str) -> None:
        """Give an instance up for good, its disk with it. It must be off. Raises NotThere."""
        self._write(f"{PRO}/release", {"instance_uuid": instance_id})

    def save_image(self, instance_id: str, name: str) -> str:
        """Begin saving an instance's disk as an image; return the image's id. It must be off."""
        found = self._write(f"{PRO}/image/save", {"instance_uuid": instance_id, "image_name": name})
        if isinstance(found, Mapping) and text(found, "image_uuid"):
            return text(found, "image_uuid")
        raise OutcomeUnknown("AutoDL took the request and named no image.")

    def _pages(self, path: str, key: str) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for page in range(1, MAX_PAGES + 1):
            data = _object(self._post(path, {"page_index": page, "page_size": PAGE_SIZE}), "list")
            entries = _entries(data)
            fresh = {text(entry, key): entry for entry in entries}
            if len(fresh) < len(entries) or fresh.keys() & found.keys():
                raise NotUnderstood("AutoDL's list changed while it was read, or repeats a page.")
            found |= fresh
            last = whole(data.get("max_page"))
            if page >= last if last is not None else len(entries) < PAGE_SIZE:
                total = whole(data.get("result_total"))
                if total is not None and total != len(found):
                    raise NotUnderstood(f"AutoDL speaks of {total} entries and lists {len(found)}.")
                return list(found.values())
            if not entries:
                break
        raise NotUnderstood("AutoDL's list has no end, or ends before its last page.")

    def _get(self, path: str, instance_id: str) -> Any:
        return _data(self._http.send("GET", path, params={"instance_uuid": instance_id}), is_write=False)

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return _data(self._http.send("POST", path, json_body=dict(body)), is_write=False)

    def _write(self, path: str, body: Mapping[str, Any]) -> Any:
        return _data(self._http.send("POST", path, is_write=True, json_body=dict(body)), is_write=True)


def _data(answer: Answer, *, is_write: bool) -> Any:
    """Return the data of an envelope that says Success; raise what any other answer means."""
    body = answer.json_or_none()
    code = text(body, "code")
    words = text(body, "msg") or answer.text[:200]
    if answer.status < 400 and code == "Success":
        return body.get("data")
    reason = reason_of(f"{code} {words}", _REASONS, Reason.REQUEST_REFUSED)
    if code and (answer.status < 400 or (answer.status < 500 and reason != Reason.REQUEST_REFUSED)):
        raise _failure(reason, code, words, is_write=is_write)
    raise_for_status(answer, words, is_write=is_write, raw_code=str(answer.status))
    if is_write:
        raise OutcomeUnknown("AutoDL's answer is not of a form that says what was done.")
    raise NotUnderstood("AutoDL's answer has no code.")


def _failure(reason: Reason, code: str, words: str, *, is_write: bool) -> ProviderError:
    told = sentence(words)
    if reason in {Reason.AUTH_FAILED, Reason.PERMISSION_MISSING}:
        return AccessRefused(told, reason=reason, raw_code=code)
    if reason == Reason.REQUEST_REFUSED and code == "InternalError":
        # The vendor refuses with this code too, but in words that the table knows; without them it may be a real failure.
        kind = OutcomeUnknown if is_write else Unavailable
        return kind(told, raw_code=code)
    return _ERRORS.get(reason, Refused)(told, reason=reason, raw_code=code)


def _object(data: Any, what: str) -> dict[str, Any]:
    if isinstance(data, dict):
        return data
    raise NotUnderstood(f"AutoDL's answer is no {what}.")


def _entries(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a page; an empty page comes as null."""
    found = data.get("list")
    if found is None:
        return []
    if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
        return found
    raise NotUnderstood("AutoDL's answer has no list.")
