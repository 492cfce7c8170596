"""A security key in software: makes passkeys (ES256) and signs with them, as WebAuthn Level 3 says in sections 5.8 and 6.1."""

import hashlib
import json
import secrets

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url, encode_cbor

PRESENT, VERIFIED, HAS_CREDENTIAL = 0x01, 0x04, 0x40


class SecurityKey:
    """One passkey. counter: grows with each use; is_verifying: whether it looks at the finger."""

    def __init__(self, origin="http://testserver", *, is_verifying=True):
        self.origin = origin
        self.is_verifying = is_verifying
        self.counter = 0
        self.id = secrets.token_bytes(32)
        self._key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options):
        """Return what `navigator.credentials.create()` gives for these options, in JSON form."""
        client_data = self._client_data("webauthn.create", options["challenge"])
        made = (0).to_bytes(16) + len(self.id).to_bytes(2) + self.id + self._public_key()
        attested = {"fmt": "none", "attStmt": {}, "authData": self._data(options["rp"]["id"], HAS_CREDENTIAL) + made}
        return self._answer(client_data, attestationObject=encode_cbor(attested))

    def get(self, options):
        """Return what `navigator.credentials.get()` gives for these options, in JSON form."""
        self.counter += 1
        client_data = self._client_data("webauthn.get", options["challenge"])
        data = self._data(options["rpId"])
        signature = self._key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(SHA256()))
        return self._answer(client_data, authenticatorData=data, signature=signature)

    def _client_data(self, kind, challenge):
        told = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps(told).encode()

    def _data(self, rp_id, flags=0):
        flags |= PRESENT | (VERIFIED if self.is_verifying else 0)
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.counter.to_bytes(4)

    def _public_key(self):
        numbers = self._key.public_key().public_numbers()
        return encode_cbor({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)})

    def _answer(self, client_data, **parts):
        name = bytes_to_base64url(self.id)
        response = {"clientDataJSON": client_data} | parts
        return {
            "id": name,
            "rawId": name,
            "type": "public-key",
            "clientExtensionResults": {},
            "response": {key: bytes_to_base64url(value) for key, value in response.items()},
        }

    def knows(self, options):
        """Whether these options ask for this key."""
        return any(base64url_to_bytes(entry["id"]) == self.id for entry in options["allowCredentials"])
