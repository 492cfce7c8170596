"""The gateway's certificate: read again when its files change, handed to Envoy only when both files belong together."""

import ssl
from pathlib import Path

import msgspec

from fleet.agent.gateway.envoy.layout import SDS, discovery, replace
from fleet.agent.gateway.envoy.listening import certificate
from fleet.agent.gateway.envoy.naming import digest_of
from fleet.agent.orders import GatewayOrder


class Certificate:
    """Follows the two files of an order. problem: a sentence while they cannot be used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[object, ...] = ()
        self.problem = ""

    def follow(self, order: GatewayOrder) -> None:
        """Look at the files; a pair that does not fit waits until it does. Raises OSError when Envoy's cannot be written."""
        if not order.certificate_file:
            self.problem, self._seen = "", ()
            return
        files = (Path(order.certificate_file), Path(order.key_file or order.certificate_file))
        try:
            seen = tuple((path, path.stat().st_mtime_ns, path.stat().st_size, path.stat().st_ino) for path in files)
            if seen == self._seen:
                return
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*files)
            chain, key = (path.read_text() for path in files)
        except (OSError, ssl.SSLError, UnicodeDecodeError) as error:
            self.problem = f"The certificate {files[0]} cannot be used: {error}."
            return
        self._seen, self.problem = seen, ""
        resource = certificate(chain, key)
        replace(self._folder / SDS, discovery(digest_of(msgspec.json.encode(resource)), [resource]))
