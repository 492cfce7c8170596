"""Secrets at rest: encrypted with keys that live outside the database, each value naming the key that made it.

Keys come from FLEETDECK_ENCRYPTION_KEYS (`<id>:<key>,<id>:<key>`, the first one encrypts) or from `<data>/encryption-keys`
(`<id> <key>` a line, the first one encrypts; mode 600; made when missing). A key is 32 bytes in URL-safe base64, as Fernet
wants it. A stored value reads `fd1:<key id>:<Fernet token>`, so that rotation sees which values are old and a missing
key is named instead of guessed.
"""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.db import models

from panel.core.keyfile import read_or_create, write_private

if TYPE_CHECKING:
    _TextField = models.TextField[str, str]
else:
    _TextField = models.TextField

SCHEME: Final = "fd1"
_LINE: Final = re.compile(r"([a-z0-9]{1,16})[ :]([A-Za-z0-9_-]{43}=)")


class DecryptionError(Exception):
    """A stored secret cannot be read: its key is missing, or the value was tampered with."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """All keys by id, in order; the first encrypts, every one decrypts."""

    fernets: Mapping[str, Fernet]

    @classmethod
    def parse(cls, text: str) -> "Keyring":
        """Read keys divided by commas or lines. Raises ImproperlyConfigured; the message shows no key."""
        entries = [entry.strip() for entry in re.split(r"[,\n]", text) if entry.strip()]
        matches = [_LINE.fullmatch(entry) for entry in entries]
        found = {match[1]: Fernet(match[2]) for match in matches if match is not None}
        if len(found) != len(entries) or not found:
            raise ImproperlyConfigured(
                "The encryption keys must read <id>:<32 bytes in URL-safe base64>, every id once; divided by commas in"
                " FLEETDECK_ENCRYPTION_KEYS, one a line in the file."
            )
        return cls(found)

    @property
    def current_id(self) -> str:
        """Return the id of the key that encrypts."""
        return next(iter(self.fernets))

    def encrypt(self, plaintext: str) -> str:
        """Return the text as it is stored."""
        token = self.fernets[self.current_id].encrypt(plaintext.encode()).decode()
        return f"{SCHEME}:{self.current_id}:{token}"

    def decrypt(self, stored: str) -> str:
        """Return the plain text. Raises DecryptionError."""
        key_id, token = split(stored)
        fernet = self.fernets.get(key_id)
        if fernet is None:
            raise DecryptionError(f"The encryption key {key_id!r} is missing; add it back to the keys.")
        try:
            return fernet.decrypt(token).decode()
        except InvalidToken as error:
            raise DecryptionError(f"A secret was not encrypted with the key {key_id!r} that it names.") from error


def split(stored: str) -> tuple[str, str]:
    """Return the key's id and the Fernet token of a stored value. Raises DecryptionError."""
    scheme, _, rest = stored.partition(":")
    key_id, _, token = rest.partition(":")
    if scheme != SCHEME or not token:
        raise DecryptionError("A stored secret does not have the form that this panel writes.")
    return key_id, token


def new_key_line() -> str:
    """Return a fresh key with a fresh id, as a line of the file."""
    return f"k{secrets.token_hex(4)} {Fernet.generate_key().decode()}"


def key_file() -> Path:
    """Return where the keys are when the environment holds none."""
    return Path(settings.ENCRYPTION_KEY_FILE)


def keys_are_in_environment() -> bool:
    """Say whether the operator gave the keys, so that the panel cannot write them."""
    return bool(settings.ENCRYPTION_KEYS)


@lru_cache(maxsize=4)
def _parsed(text: str) -> Keyring:
    return Keyring.parse(text)


def keyring() -> Keyring:
    """Return the keys in force. The file is read anew each time, so that running processes follow a rotation."""
    if keys_are_in_environment():
        return _parsed(settings.ENCRYPTION_KEYS)
    return _parsed(read_or_create(key_file(), make=new_key_line))


def _replace_lines(lines: list[str]) -> None:
    path = key_file()
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    write_private(fresh, "\n".join(lines) + "\n")
    fresh.replace(path)


def add_key() -> str:
    """Put a fresh key on top of the file and return its id; from now on it encrypts."""
    keyring()  # makes the file when there is none
    line = new_key_line()
    _replace_lines([line, *key_file().read_text().splitlines()])
    return line.partition(" ")[0]


def drop_keys_but(kept: set[str]) -> list[str]:
    """Take every key out of the file whose id is not in `kept`, nor the current one; return the ids that went."""
    current = keyring().current_id
    lines = [line for line in key_file().read_text().splitlines() if line.strip()]
    gone = [line.split()[0] for line in lines if line.split()[0] not in kept | {current}]
    if gone:
        _replace_lines([line for line in lines if line.split()[0] not in gone])
    return gone


class EncryptedTextField(_TextField):
    """Text that the database only ever sees encrypted. It cannot be searched for; empty text stays empty."""

    def get_prep_value(self, value: Any) -> Any:
        """Encrypt on the way in."""
        text = super().get_prep_value(value)
        return keyring().encrypt(text) if text else text

    def from_db_value(self, value: str | None, expression: object, connection: object) -> str | None:  # noqa: ARG002
        """Decrypt on the way out. Raises DecryptionError."""
        return keyring().decrypt(value) if value else value

    def get_lookup(self, lookup_name: str) -> Any:
        """Allow `isnull` alone: the same text is encrypted differently each time, so a comparison would never hold."""
        if lookup_name != "isnull":
            raise FieldError(f"{self.name} is encrypted and cannot be searched for.")
        return super().get_lookup(lookup_name)
