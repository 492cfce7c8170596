"""RunPod's REST API v2 over HTTP: bearer key, RFC 9457 problems, rate headers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import httpx

from fleet.providers.base import reason_of
from fleet.providers.errors import NotUnderstood, Refused
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_for_status, sentence
from fleet.reasons import Reason

BASE_URL: Final = "https://api.runpod.io/v2"
SPACING: Final = Spacing({"": 0.05})

# A 400 is either a rule that was broken or no capacity, with no code that tells them apart.
_REASONS: Final = (
    ("no longer any instances", Reason.NO_CAPACITY),
    ("no instances", Reason.NO_CAPACITY),
    ("not available", Reason.NO_CAPACITY),
    ("capacity", Reason.NO_CAPACITY),
    ("not enough free gpu", Reason.NO_CAPACITY),
    ("resources", Reason.NO_CAPACITY),
    ("spend limit", Reason.NO_QUOTA),
    ("quota", Reason.NO_QUOTA),
    ("balance", Reason.NO_BALANCE),
    ("insufficient fund", Reason.NO_BALANCE),
)


class RunPodClient:
    """The calls that the adapter needs; answers are the JSON bodies."""

    def __init__(self, api_key: str, *, account: str, transport: httpx.BaseTransport | None) -> None:
        self._http = ProviderHttp(
            BASE_URL,
            account=account,
            headers={"Authorization": f"Bearer {api_key}"},
            spacing=SPACING,
            transport=transport,
        )

    def pods(self) -> list[dict[str, Any]]:
        """Return all pods; the API has no pages."""
        return _list(self._get("/pods", includeClusterPods="false"), "pods")

    def pod(self, pod_id: str) -> dict[str, Any]:
        """Return one pod. Raises NotThere."""
        return _object(self._get(f"/pods/{quote(pod_id, safe='')}"))

    def create_pod(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a pod and return it."""
        return _object(self._write("POST", "/pods", body))

    def act(self, pod_id: str, action: str) -> None:
        """Send start, stop or restart."""
        self._write("POST", f"/pods/{quote(pod_id, safe='')}/action", {"action": action})

    def delete_pod(self, pod_id: str) -> None:
        """Terminate a pod. Raises NotThere."""
        self._write("DELETE", f"/pods/{quote(pod_id, safe='')}", None)

    def gpus(self, *, cloud: str, count: int) -> list[dict[str, Any]]:
        """Return the catalogue of GPU types with how many pods of that many GPUs one of the clouds has free."""
        query = {"include": "AVAILABILITY", "product": "POD", "cloud": cloud, "count": str(count)}
        return _list(self._get("/catalog/gpus", **query), "gpus")

    def pod_billing(self, start: datetime, end: datetime) -> list[dict[str, Any]]:
        """Return daily records of what pods cost."""
        answer = self._get("/billing/pods", bucketSize="day", startTime=start.isoformat(), endTime=end.isoformat())
        return _list(answer, "records")

    def _get(self, path: str, **params: str) -> Any:
        answer = self._http.send("GET", path, params=params or None)
        _check(answer, is_write=False)
        return answer.json()

    def _write(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        answer = self._http.send(method, path, is_write=True, json_body=body)
        _check(answer, is_write=True)
        return answer.json_or_none()


def _check(answer: Answer, *, is_write: bool) -> None:
    """Raise what a problem document means."""
    if answer.status < 400:
        return
    problem = answer.json_or_none()
    words = answer.text[:200]
    if isinstance(problem, dict):
        words = str(problem.get("detail") or problem.get("title") or words)
    if answer.status == 400 and not answer.is_page:
        reason = reason_of(words, _REASONS, Reason.REQUEST_REFUSED)
        raise Refused(sentence(words), reason=reason, raw_code="400")
    raise_for_status(answer, words, is_write=is_write, raw_code=str(answer.status))


def _list(body: Any, key: str) -> list[dict[str, Any]]:
    if isinstance(body, dict) and isinstance(body.get(key), list):
        return [entry for entry in body[key] if isinstance(entry, dict)]
    raise NotUnderstood(f"RunPod's answer has no list of {key}.")


def _object(body: Any) -> dict[str, Any]:
    if isinstance(body, dict) and isinstance(body.get("id"), str):
        return body
    raise NotUnderstood("RunPod's answer is no pod.")
