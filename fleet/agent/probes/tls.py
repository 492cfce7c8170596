"""TLS for probes: one context for each way of asking in a process, and how long a certificate is good for."""

import ssl
import time
from typing import Any, Final, Literal

Protocol = Literal["http/1.1", "h2", ""]
DAY_SECONDS: Final = 86_400


class Contexts:
    """Makes each context once: that costs 24 ms of CPU. ca_file: what is trusted, empty for the system's own."""

    def __init__(self, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self._made: dict[tuple[bool, Protocol], ssl.SSLContext] = {}

    def get(self, protocol: Protocol, *, is_verified: bool) -> ssl.SSLContext:
        """Return the context that offers a protocol and checks the certificate, or does not."""
        key = (is_verified, protocol)
        if key not in self._made:
            context = ssl.create_default_context(cafile=self._ca_file or None)
            if not is_verified:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if protocol:
                context.set_alpn_protocols([protocol])
            self._made[key] = context
        return self._made[key]


def certificate_days(connection: Any) -> float | None:
    """Return for how many days the certificate is good yet; None when it was not checked, so that nothing is known of it.

    connection: the ssl.SSLObject of a transport.
    """
    until = (connection.getpeercert() or {}).get("notAfter")
    return None if until is None else round((ssl.cert_time_to_seconds(until) - time.time()) / DAY_SECONDS, 2)
