"""Compshare's API over HTTP: signed forms, errors inside HTTP 200 as RetCode, pages by offset, one region a call."""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import httpx

from fleet.providers.base import reason_of
from fleet.providers.compshare.signing import flattened, signature
from fleet.providers.errors import (
    AccessRefused,
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

BASE_URL: Final = "https://api.compshare.cn"
HOME_REGION: Final = "cn-wlcb"  # any region's name opens the list of all
# Where the platform has sold. Machines may run on in a region that it sells no more and leaves out of its list.
KNOWN_REGIONS: Final = (HOME_REGION, "cn-sh2", "cn-bj2", "cn-gd", "us-den")
NO_SUCH_PARAMETER: Final = "230"
PAGE_SIZE: Final = 100
MAX_PAGES: Final = 100
SPACING: Final = Spacing({"": 0.1})
# Calls that know no ProjectId.
WITHOUT_PROJECT: Final = frozenset({"DescribeCompShareSupportZone", "DescribeCompShareGpuInventory"})

# Codes with one meaning: the vendor's list of errors, and those of UCloud's gateway.
_CODES: Final[Mapping[int, Reason]] = {
    161: Reason.NOT_SUPPORTED,
    171: Reason.AUTH_FAILED,
    172: Reason.AUTH_FAILED,
    230: Reason.REQUEST_REFUSED,
    520: Reason.NO_BALANCE,
    8333: Reason.NO_OFFER,  # speaks of CPU and memory, and means that the zone does not have this GPU
    226601: Reason.NO_BALANCE,
    226602: Reason.CONTRACT_ENDED,
    226603: Reason.REQUEST_REFUSED,
    226604: Reason.NO_CAPACITY,
    226605: Reason.NOT_ALLOWED_NOW,
    226606: Reason.PERMISSION_MISSING,
    8433: Reason.PROVIDER_DOWN,
}
_WORDS: Final = (
    ("VerifyAC", Reason.AUTH_FAILED),
    ("permission", Reason.PERMISSION_MISSING),
    ("权限", Reason.PERMISSION_MISSING),
    ("frequent", Reason.RATE_LIMITED),
    ("频繁", Reason.RATE_LIMITED),
    ("OperationInProgress", Reason.NOT_ALLOWED_NOW),
    ("quota", Reason.NO_QUOTA),
    ("配额", Reason.NO_QUOTA),
    ("unpaid", Reason.NO_BALANCE),
    ("未支付", Reason.NO_BALANCE),
    ("balance", Reason.NO_BALANCE),
    ("余额", Reason.NO_BALANCE),
    ("not enough", Reason.NO_CAPACITY),
    ("out of resource", Reason.NO_CAPACITY),
    ("资源不足", Reason.NO_CAPACITY),
    ("state", Reason.NOT_ALLOWED_NOW),
    ("状态", Reason.NOT_ALLOWED_NOW),
    ("service error", Reason.PROVIDER_DOWN),
    ("internal", Reason.PROVIDER_DOWN),
    ("timeout", Reason.PROVIDER_DOWN),
    ("服务异常", Reason.PROVIDER_DOWN),
)


class CompshareClient:
    """The calls that the adapter needs; answers are the JSON bodies."""

    def __init__(
        self,
        public_key: str,
        private_key: str,
        *,
        project_id: str,
        account: str,
        transport: httpx.BaseTransport | None,
    ) -> None:
        self._public_key = public_key
        self._private_key = private_key
        self._project_id = project_id
        self._http = ProviderHttp(BASE_URL, account=account, spacing=SPACING, transport=transport)

    def zones(self) -> list[dict[str, Any]]:
        """Return the zones where the platform sells now, each with its region; at least one."""
        found = objects(self._read("DescribeCompShareSupportZone", Region=HOME_REGION), "ZoneInfo")
        if any(text(zone, "Region") for zone in found):
            return found
        raise NotUnderstood("Compshare names no zone.")

    def instances(self, region: str) -> list[dict[str, Any]]:
        """Return all instances of a region."""
        return self._pages("DescribeCompShareInstance", "UHostSet", "UHostId", Region=region, Limit=PAGE_SIZE)

    def types(self, region: str) -> list[dict[str, Any]]:
        """Return what a region sells, sold out or not; memory in GB."""
        return objects(self._read("DescribeAvailableCompShareInstanceTypes", Region=region), "AvailableInstanceTypes")

    def inventory(self, region: str) -> dict[str, Any]:
        """Return the free cards of a region: {GpuInventory: {pool: {zone id: {type: cards}}}, SpotUnsupportedGpuTypes}."""
        return self._read("DescribeCompShareGpuInventory", Region=region)

    def prices(self, **params: Any) -> dict[str, Any]:
        """Return what an instance of this form costs, by charge type."""
        return self._read("GetCompShareInstancePrice", **params)

    def platform_images(self, region: str) -> list[dict[str, Any]]:
        """Return the vendor's images. The call takes no Limit, whatever its documentation says."""
        return self._pages("DescribeCompShareImages", "ImageSet", "CompShareImageId", Region=region)

    def own_images(self, region: str, zone: str) -> list[dict[str, Any]]:
        """Return the images that the account has made."""
        return self._pages(
            "DescribeCompShareCustomImages",
            "ImageSet",
            "CompShareImageId",
            Region=region,
            Zone=zone,
            Limit=PAGE_SIZE,
        )

    def create(self, **params: Any) -> str:
        """Order one instance; return its id."""
        found = self._write("CreateCompShareInstance", **params).get("UHostIds")
        if isinstance(found, list) and len(found) == 1 and isinstance(found[0], str) and found[0].strip():
            return found[0].strip()
        raise OutcomeUnknown("Compshare took the order and did not name one instance.")

    def act(self, action: str, *, region: str, zone: str, instance_id: str, **params: Any) -> None:
        """Send Start, Stop, Reboot or Terminate."""
        self._write(f"{action}CompShareInstance", Region=region, Zone=zone, UHostId=instance_id, **params)

    def create_image(self, *, region: str, zone: str, instance_id: str, name: str) -> str:
        """Begin to make an image of an instance; return its id."""
        answer = self._write("CreateCompShareCustomImage", Region=region, Zone=zone, UHostId=instance_id, Name=name)
        if text(answer, "CompShareImageId"):
            return text(answer, "CompShareImageId")
        raise OutcomeUnknown("Compshare took the request and named no image.")

    def _pages(self, action: str, key: str, id_key: str, **params: Any) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for _page in range(MAX_PAGES):
            # An offset beyond the count is an error there, so none is sent for the first page.
            answer = self._read(action, **params, Offset=len(found) or None)
            entries = objects(answer, key)
            fresh = {text(entry, id_key): entry for entry in entries}
            if len(fresh) < len(entries) or fresh.keys() & found.keys():
                raise NotUnderstood("Compshare's list changed while it was read, or repeats a page.")
            found |= fresh
            total = whole(answer.get("TotalCount"))
            if total is None or len(found) >= total:
                _check_total(total, found, entries, params.get("Limit"))
                return list(found.values())
            if not entries:
                break
        raise NotUnderstood("Compshare's list has no end, or breaks off.")

    def _read(self, action: str, **params: Any) -> dict[str, Any]:
        return _body(self._send(action, params, is_write=False), is_write=False)

    def _write(self, action: str, **params: Any) -> dict[str, Any]:
        return _body(self._send(action, params, is_write=True), is_write=True)

    def _send(self, action: str, params: Mapping[str, Any], *, is_write: bool) -> Answer:
        project = None if action in WITHOUT_PROJECT else self._project_id or None
        form = flattened({**params, "Action": action, "ProjectId": project, "PublicKey": self._public_key})
        form["Signature"] = signature(form, self._private_key)
        return self._http.send(
            "POST",
            "/",
            is_write=is_write,
            content=urlencode(form).encode(),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
        )


def objects(body: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects under a key; absent and null are none, and one object by itself is one."""
    found = body.get(key)
    if found is None:
        return []
    if isinstance(found, dict):
        return [found]
    if isinstance(found, list) and all(isinstance(entry, dict) for entry in found):
        return found
    raise NotUnderstood(f"Compshare's answer has no list of {key}.")


def _check_total(total: int | None, found: Mapping[str, Any], entries: Iterable[Any], limit: int | None) -> None:
    """Refuse a list that is longer than told, and one without a count whose page is full."""
    if total is None and limit is not None and len(list(entries)) >= limit:
        raise NotUnderstood("Compshare's list does not say how long it is.")
    if total is not None and total != len(found):
        raise NotUnderstood(f"Compshare speaks of {total} entries and lists {len(found)}.")


def _body(answer: Answer, *, is_write: bool) -> dict[str, Any]:
    """Return a body whose RetCode is 0; raise what any other answer means."""
    body = answer.json_or_none()
    code = whole(body.get("RetCode")) if isinstance(body, dict) else None
    if isinstance(body, dict) and code == 0 and answer.status < 400:
        return body
    words = text(body, "Message") or answer.text[:200]
    if code and answer.status < 500:
        raise _failure(code, words, is_write=is_write)
    raise_for_status(answer, words, is_write=is_write, raw_code=str(answer.status))
    if is_write:
        raise OutcomeUnknown("Compshare's answer is not of a form that says what was done.")
    raise NotUnderstood("Compshare's answer has no RetCode.")


def _failure(code: int, words: str, *, is_write: bool) -> ProviderError:
    reason = _CODES.get(code) or reason_of(words, _WORDS, Reason.REQUEST_REFUSED)
    told = sentence(words) or f"RetCode {code}"
    if reason in {Reason.AUTH_FAILED, Reason.PERMISSION_MISSING}:
        return AccessRefused(told, reason=reason, raw_code=str(code))
    if reason == Reason.RATE_LIMITED:
        return Throttled(told, raw_code=str(code))
    if reason == Reason.PROVIDER_DOWN:
        # A failure of their own may come after the deed.
        kind = OutcomeUnknown if is_write else Unavailable
        return kind(told, raw_code=str(code))
    return Refused(told, reason=reason, raw_code=str(code))
