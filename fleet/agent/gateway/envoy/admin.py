"""Envoy's admin interface, through its socket in the gateway's folder."""

import http.client
import os
import socket
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

SECONDS: Final = 2.0


class AdminError(Exception):
    """Envoy does not answer, or not what was asked."""


class _Connection(http.client.HTTPConnection):
    """A connection to a socket in a folder, whose path may be longer than the 108 bytes that a socket's address holds."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._folder = folder
        self._name = name

    def connect(self) -> None:
        descriptor = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(SECONDS)
            self.sock.connect(f"/proc/self/fd/{descriptor}/{self._name}")
        finally:
            os.close(descriptor)


class Admin:
    """Questions to one Envoy. folder: where its socket lies; name: of the socket."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name

    def ask(self, method: str, path: str) -> bytes:
        """Return the body of an answer with status 200. Raises AdminError."""
        connection = _Connection(self._folder, self._name)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise AdminError(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise AdminError(f"{path}: {response.status} {body[:200].decode(errors='replace')}")
        return body

    def stats(self, pattern: str) -> dict[str, Any]:
        """Return name → value of the counters and texts whose name matches a regular expression. Raises AdminError."""
        body = self.ask("GET", f"/stats?format=json&filter={quote(pattern, safe='')}")
        try:
            entries = msgspec.json.decode(body)["stats"]
            return {entry["name"]: entry["value"] for entry in entries if "name" in entry}
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise AdminError(f"The statistics cannot be read: {error}") from error

    def is_silent(self) -> bool:
        """Say whether Envoy lets a question wait in vain; a refusal is an answer."""
        try:
            self.ask("GET", "/ready")
        except AdminError as error:
            # A socket whose queue is full of questions that nobody took has no room for this one.
            return isinstance(error.__cause__, TimeoutError | BlockingIOError)
        return False

    def is_ready(self) -> bool:
        """Say whether Envoy has its first configuration and takes requests."""
        try:
            return self.ask("GET", "/ready").strip() == b"LIVE"
        except AdminError:
            return False
