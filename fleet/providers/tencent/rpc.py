"""One call of a Tencent Cloud API 3.0: signed, and the error inside a 200 told apart from an answer."""

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from fleet.providers.errors import NotUnderstood, OutcomeUnknown
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_foreign
from fleet.providers.reading import text
from fleet.providers.signing import tc3
from fleet.providers.tencent.codes import failure
from panel.core.clock import now

# Most actions allow ten calls a second, each by itself.
SPACING: Final = Spacing({"": 0.1})


class TencentRpc:
    """The calls of one account, whatever the product."""

    def __init__(self, secret_id: str, secret_key: str, *, account: str, transport: httpx.BaseTransport | None) -> None:
        self._secret_id, self._secret_key = secret_id.strip(), secret_key.strip()
        self._http = ProviderHttp("", account=account, spacing=SPACING, transport=transport)

    def call(
        self,
        service: str,
        version: str,
        action: str,
        body: Mapping[str, Any],
        *,
        region: str = "",
        is_write: bool = False,
    ) -> dict[str, Any]:
        """Call an action of a service (`cvm`) and return what stands under Response. Raises ProviderError."""
        host = f"{service}.tencentcloudapi.com"
        content = json.dumps(body).encode()
        headers = tc3.signed_headers(
            secret_id=self._secret_id,
            secret_key=self._secret_key,
            service=service,
            host=host,
            action=action,
            version=version,
            at=now(),
            body=content,
            region=region,
        )
        answer = self._http.send(
            "POST", f"https://{host}/", is_write=is_write, spaced_as=action, content=content, headers=headers
        )
        return _checked(answer, action, is_write=is_write)


def _checked(answer: Answer, action: str, *, is_write: bool) -> dict[str, Any]:
    """Return the response. Raises what its error means: it comes with the status 200."""
    body = answer.json_or_none()
    response = body.get("Response") if isinstance(body, dict) else None
    if isinstance(response, dict):
        error = response.get("Error")
        if isinstance(error, Mapping):
            raise failure(text(error, "Code"), text(error, "Message"), is_write=is_write)
        if answer.status < 400 and error is None:
            return response
    raise_foreign(answer, is_write=is_write)
    words = f"The answer to {action} has a form that is not known."
    raise OutcomeUnknown(words) if is_write else NotUnderstood(words)
