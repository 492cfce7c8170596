"""TCP ports: whether ours is free, who has it when not, and a free one where the number does not matter."""

import errno
import socket
from typing import Final

import psutil

from panel.up.errors import UpError

LOOPBACK: Final = "127.0.0.1"
HIGHEST_PORT: Final = 65_535


def _holder(port: int) -> str:
    """Name the process that listens on `port`, as far as we may see it."""
    try:
        for connection in psutil.net_connections("tcp"):
            is_ours = connection.laddr and connection.laddr[1] == port and connection.status == psutil.CONN_LISTEN
            if is_ours and connection.pid:
                return f" by {psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError):
        pass
    return ""


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now. Raises OSError for an address that is not this machine's."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def require_free(host: str, port: int) -> None:
    """Raise UpError unless the panel can listen on `host`:`port`."""
    if not 1 <= port <= HIGHEST_PORT:
        raise UpError(f"FLEETDECK_PORT is {port}; a port lies between 1 and {HIGHEST_PORT}.")
    try:
        if is_free(host, port):
            return
    except socket.gaierror as error:
        raise UpError(f"FLEETDECK_HOST is {host!r}, which is no address: {error.strerror}.") from error
    except PermissionError as error:
        raise UpError(f"Port {port} is for root only. Set FLEETDECK_PORT to one above 1023.") from error
    except OSError as error:
        raise UpError(
            f"The panel cannot listen on {host}, port {port} (FLEETDECK_HOST, FLEETDECK_PORT): {error}."
        ) from error
    raise UpError(
        f"Port {port} on {host} is in use{_holder(port)}. Stop that program, or set FLEETDECK_PORT to a free port: "
        f"FLEETDECK_PORT={free_port(host)} make up"
    )


def free_port(host: str = LOOPBACK) -> int:
    """Return a port that nothing listens on at the moment."""
    family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0][0]
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
