"""TC3-HMAC-SHA256, the signature of Tencent Cloud's API 3.0 (POST with a JSON body). Pure.

Source: Tencent Cloud, "API 3.0, signature method v3". Signed are the method, the headers `content-type` and `host`, and the
SHA-256 of the body; the key is derived for one day and one service.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final

ALGORITHM: Final = "TC3-HMAC-SHA256"
CONTENT_TYPE: Final = "application/json; charset=utf-8"
_SIGNED: Final = "content-type;host"


def _keyed(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signed_headers(
    *,
    secret_id: str,
    secret_key: str,
    service: str,
    host: str,
    action: str,
    version: str,
    at: datetime,
    body: bytes,
    region: str = "",
) -> dict[str, str]:
    """Return the headers of one request, the authorization among them.

    service: the first part of the host as a rule (`cvm`). at: an aware time; the server refuses one that is five minutes
    off. region: "" for calls that have none.
    """
    moment = at.astimezone(UTC)
    timestamp, day = str(int(moment.timestamp())), moment.strftime("%Y-%m-%d")
    lines = f"content-type:{CONTENT_TYPE}\nhost:{host}\n"
    request = "\n".join(("POST", "/", "", lines, _SIGNED, hashlib.sha256(body).hexdigest()))
    scope = f"{day}/{service}/tc3_request"
    to_sign = "\n".join((ALGORITHM, timestamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = _keyed(_keyed(_keyed(f"TC3{secret_key}".encode(), day), service), "tc3_request")
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    headers = {
        "Authorization": f"{ALGORITHM} Credential={secret_id}/{scope}, SignedHeaders={_SIGNED}, Signature={signature}",
        "Content-Type": CONTENT_TYPE,
        "Host": host,
        "X-TC-Action": action,
        "X-TC-Timestamp": timestamp,
        "X-TC-Version": version,
    }
    return {**headers, "X-TC-Region": region} if region else headers
