"""TLS for probes: one context for each way of asking in a process, and how long a certificate is good for."""

import ssl
import time
from typing import Final, Literal

Protocol = Literal["http/1.1", "h2", ""]
DAY_SECONDS: Final = 86_400
LARGEST_PIECE: Final = 65_536


class Contexts:
    """Makes each context once: that costs 24 ms of CPU. ca_file: what is trusted, empty for the system's own."""

    def __init__(self, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self._made: dict[tuple[bool, Protocol], ssl.SSLContext] = {}

    def get(self, protocol: Protocol, *, is_verified: bool) -> ssl.SSLContext:
        """Return the context that offers a protocol and checks the certificate, or does not."""
        key = (is_verified, protocol)
        if key not in self._made:
            context = ssl.create_default_context(cafile=self._ca_file or None) if is_verified else _unverified()
            if protocol:
                context.set_alpn_protocols([protocol])
            self._made[key] = context
        return self._made[key]


def _unverified() -> ssl.SSLContext:
    """Return a context that trusts everybody, without the system's authorities: to look among them costs 0.2 ms each time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Session:
    """TLS of one connection, without the connection: bytes in, bytes out.

    asyncio's own tells no moments, and takes a quarter of a megabyte for each connection.
    """

    def __init__(self, context: ssl.SSLContext, name: str) -> None:
        """Get ready, with the first message written: making its keys is our own work, and no time of the connection's.

        name: that is asked for and checked. Raises ValueError for one that cannot be.
        """
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=name)
        self.hello, _ = self.shake_hands(b"")

    def shake_hands(self, data: bytes) -> tuple[bytes, bool]:
        """Return what has to be sent, and whether the handshake is over. Raises ssl.SSLError, ssl.CertificateError."""
        self._in.write(data)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return self._out.read(), False
        return self._out.read(), True

    def alert(self) -> bytes:
        """Return what tells the other side why its handshake failed."""
        return self._out.read()

    def encrypt(self, data: bytes) -> bytes:
        """Return what has to be sent for these bytes."""
        if data:
            self._object.write(data)
        return self._out.read()

    def decrypt(self, data: bytes) -> tuple[list[bytes], bool]:
        """Return the pieces in what came, and whether the other side said that it ends. Raises ssl.SSLError."""
        self._in.write(data)
        pieces: list[bytes] = []
        while True:
            try:
                piece = self._object.read(LARGEST_PIECE)
            except ssl.SSLWantReadError:
                return pieces, False
            except ssl.SSLZeroReturnError:
                return pieces, True
            if not piece:
                return pieces, True
            pieces.append(piece)

    @property
    def version(self) -> str:
        """The protocol's version, such as TLSv1.3."""
        return self._object.version() or ""

    @property
    def certificate_days(self) -> float | None:
        """For how many days the certificate is good yet; None when it was not checked, so that nothing is known of it."""
        until = (self._object.getpeercert() or {}).get("notAfter")
        return None if until is None else round((ssl.cert_time_to_seconds(str(until)) - time.time()) / DAY_SECONDS, 2)
