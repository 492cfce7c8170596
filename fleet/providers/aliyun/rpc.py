"""One call of an Alibaba Cloud API in RPC style: signed, and its error envelope told apart from an answer."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

import httpx

from fleet.providers.aliyun.codes import failure
from fleet.providers.errors import NotUnderstood, OutcomeUnknown
from fleet.providers.http import Answer, ProviderHttp, Spacing, raise_foreign
from fleet.providers.reading import text
from fleet.providers.signing import acs3
from panel.core.clock import now

# The quotas of the single actions are not published; ten calls a second of one kind have a wide margin.
SPACING: Final = Spacing({"": 0.1})


class AliyunRpc:
    """The calls of one account, whatever the product."""

    def __init__(self, key_id: str, secret: str, *, account: str, transport: httpx.BaseTransport | None) -> None:
        self._key_id, self._secret = key_id.strip(), secret.strip()
        self._http = ProviderHttp("", account=account, spacing=SPACING, transport=transport)

    def call(
        self, host: str, version: str, action: str, params: Mapping[str, str], *, is_write: bool = False
    ) -> dict[str, Any]:
        """Call an action and return its answer.

        host: of the product in the region. params: as text, in the query, as the API wants them. Raises ProviderError.
        """
        headers = acs3.signed_headers(
            key_id=self._key_id,
            secret=self._secret,
            method="POST",
            host=host,
            action=action,
            version=version,
            at=now(),
            nonce=secrets.token_hex(16),
            params=params,
        )
        url = f"https://{host}/?{acs3.canonical_query(params)}"
        answer = self._http.send("POST", url, is_write=is_write, spaced_as=action, headers=headers)
        return _checked(answer, action, is_write=is_write)


def _checked(answer: Answer, action: str, *, is_write: bool) -> dict[str, Any]:
    """Return the body of an answer. Raises what its error means; products such as BSS say no inside a 200."""
    body = answer.json_or_none()
    if isinstance(body, dict):
        code = text(body, "Code")
        if body.get("Success") is False or (code and answer.status >= 400):
            raise failure(answer, code, text(body, "Message"), is_write=is_write)
        if answer.status < 400:
            return body
    raise_foreign(answer, is_write=is_write)
    words = f"The answer to {action} has a form that is not known."
    raise OutcomeUnknown(words) if is_write else NotUnderstood(words)
