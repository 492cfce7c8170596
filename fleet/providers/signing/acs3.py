"""ACS3-HMAC-SHA256, the signature of Alibaba Cloud's APIs (RPC and ROA style). Pure.

Source: Alibaba Cloud, "Request syntax and signature method V3". Signed are the method, the path, the query, the headers
`host`, `content-type` and every `x-acs-…`, and the SHA-256 of the body.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

ALGORITHM: Final = "ACS3-HMAC-SHA256"


def encoded(text: str) -> str:
    """Return text as it stands in a signed path or query: RFC 3986, everything but letters, digits and -_.~ escaped."""
    return quote(text, safe="-_.~")


def canonical_query(params: Mapping[str, str]) -> str:
    """Return the query as it is signed and sent: by name, escaped."""
    return "&".join(f"{encoded(name)}={encoded(params[name])}" for name in sorted(params))


def signed_headers(
    *,
    key_id: str,
    secret: str,
    method: str,
    host: str,
    action: str,
    version: str,
    at: datetime,
    nonce: str,
    path: str = "/",
    params: Mapping[str, str] | None = None,
    body: bytes = b"",
    content_type: str = "",
) -> dict[str, str]:
    """Return the headers of one request, the authorization among them.

    host: as it will be sent, without a scheme. params: the query, unescaped; send it as `canonical_query`. nonce: never
    used before with this key. at: an aware time; the server refuses one that is 15 minutes off. path: already escaped.
    """
    digest = hashlib.sha256(body).hexdigest()
    headers = {
        "host": host,
        "x-acs-action": action,
        "x-acs-content-sha256": digest,
        "x-acs-date": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": nonce,
        "x-acs-version": version,
    }
    if content_type:
        headers["content-type"] = content_type
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers))
    request = "\n".join((method, path, canonical_query(params or {}), lines, names, digest))
    to_sign = f"{ALGORITHM}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(secret.encode(), to_sign.encode(), hashlib.sha256).hexdigest()
    return {**headers, "Authorization": f"{ALGORITHM} Credential={key_id},SignedHeaders={names},Signature={signature}"}
