"""A real SMTP server on loopback (aiosmtpd): TLS of both kinds, log-in, greylisting, refusals, slowness."""

import asyncio
import contextlib
import ssl
import threading
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.waiting import free_port

USER, PASSWORD = "panel@example.com", "authorisation-code-123456"


def certificate(directory, name="localhost"):
    """Write a certificate for `name` and its key; returns both paths."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    at = datetime.now(tz=UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(at - timedelta(days=1))
        .not_valid_after(at + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = directory / f"{name}.pem", directory / f"{name}.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


class Mailbox:
    """What the server was given, and how it answers. refuse: an answer by phase; slow_at: a phase that takes for ever."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        """Forget everything."""
        self.mails, self.answers, self.slow_at, self.greylist, self.seen = [], {}, "", False, set()
        self.drop_after_data = False

    async def _phase(self, name):
        if self.slow_at == name:
            await asyncio.sleep(60)
        return self.answers.get(name, "")

    async def handle_EHLO(self, server, session, envelope, hostname, responses):  # noqa: N802 (aiosmtpd's names)
        """Greet."""
        await self._phase("hello")
        session.host_name = hostname
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802 (aiosmtpd's names)
        """Take a sender."""
        answer = await self._phase("sender")
        if answer:
            return answer
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 (aiosmtpd's names)
        """Take a recipient, the second time when greylisting."""
        answer = await self._phase("recipient")
        if self.greylist and address not in self.seen:
            self.seen.add(address)
            return "451 4.7.1 Greylisted, try again in 60 seconds"
        if answer:
            return answer
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 (aiosmtpd's names)
        """Take a mail."""
        answer = await self._phase("data")
        if answer:
            return answer
        with self.lock:
            self.mails.append(message_from_bytes(envelope.content, policy=default))
        if self.drop_after_data:
            server.transport.abort()
        return "250 2.0.0 queued as 4711"


def _authenticate(server, session, envelope, mechanism, data):
    is_right = getattr(data, "login", b"") == USER.encode() and getattr(data, "password", b"") == PASSWORD.encode()
    return AuthResult(success=is_right, handled=False, auth_data=None)


class _Controller(Controller):
    def factory(self):
        return SMTP(self.handler, **self.SMTP_kwargs)


@contextlib.contextmanager
def smtp_server(mailbox, *, transport="none", paths=None, is_auth_required=False):
    """Run the server; yields its port. transport: none, starttls, tls."""
    context = None
    if paths is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*paths)
    options = {
        "authenticator": _authenticate,
        "auth_required": is_auth_required,
        "auth_require_tls": transport == "starttls",
    }
    if transport == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    controller = _Controller(
        mailbox, hostname="127.0.0.1", port=free_port(), server_hostname="mail.test",
        ssl_context=context if transport == "tls" else None, **options,
    )  # fmt: skip
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()
