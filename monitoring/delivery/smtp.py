"""One mail over SMTP, within 15 seconds in all, to a checked address, and what was said."""

import contextlib
import smtplib
import socket
import ssl
import threading
from email.message import EmailMessage
from itertools import islice
from typing import Any, Final

import httpcore

from monitoring.notifiers import mail
from monitoring.notifiers.phrases import phrase as _
from monitoring.notifiers.verdict import Verdict
from panel.core.egress import AddressRefused, resolve

WHOLE_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 5.0
MOST_ADDRESSES: Final = 3


def context_of(ca_certificate: str) -> ssl.SSLContext:
    """Return the TLS settings: certificates are checked, against an authority of one's own too when one is given."""
    context = ssl.create_default_context()
    if ca_certificate:
        context.load_verify_locations(cadata=ca_certificate)
    return context


class Conversation(smtplib.SMTP):
    """An SMTP session that remembers what was said, secrets left out, and in which phase it is."""

    def __init__(self, host: str, port: int, *, context: ssl.SSLContext, is_implicit: bool, name: str) -> None:
        self.said: list[str] = []
        self.phase = "connect"
        self.is_body_sent = False
        self._implicit = context if is_implicit else None
        self._name = host
        super().__init__(local_hostname=name, timeout=WHOLE_SECONDS)
        self._host = host  # what STARTTLS checks the certificate against
        self.port = port

    def begin(self) -> tuple[int, str]:
        """Connect; returns the greeting."""
        code, told = self.connect(self._name, self.port)
        return code, told.decode(errors="replace") if isinstance(told, bytes) else str(told)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        failure: OSError | None = None
        for address in islice(resolve(host, port), MOST_ADDRESSES):
            try:
                plain = socket.create_connection((address, port), CONNECT_SECONDS)
            except OSError as error:
                failure = error
                continue
            plain.settimeout(timeout)
            return plain if self._implicit is None else self._implicit.wrap_socket(plain, server_hostname=host)
        assert failure is not None  # noqa: S101 (resolve yields one at least)
        raise failure

    def putcmd(self, cmd: str, args: str = "") -> None:
        """Send a command. Of a log-in, the mechanism alone is remembered."""
        shown = f"{cmd} {args}".rstrip()
        if self.phase == "auth":
            shown = f"AUTH {args.partition(' ')[0]} [redacted]" if cmd.upper() == "AUTH" else "[redacted]"
        self.said.append(f"C: {shown}")
        super().putcmd(cmd, args)

    def getreply(self) -> tuple[int, bytes]:
        """Read a reply."""
        code, told = super().getreply()
        lines = told.decode(errors="replace").splitlines() or [""]
        shown = ["[redacted]"] if self.phase == "auth" and code == 334 else lines
        self.said += [f"S: {code} {line}"[:500] for line in shown[:20]]
        return code, told

    def send(self, s: Any) -> None:
        """Send bytes; the mail itself is told by its length."""
        if self.phase == "data" and len(s) > 100:
            self.said.append(f"C: ({len(s)} bytes of mail)")
            self.is_body_sent = True
        super().send(s)


def send(mail_message: EmailMessage, settings: dict[str, Any], password: str) -> tuple[Verdict, str]:
    """Send one mail to its one recipient; returns what came of it and the conversation."""
    context = context_of(settings.get("ca_certificate", ""))
    sender_domain = str(settings["sender"]).rpartition("@")[2]
    talk = Conversation(
        settings["host"],
        settings["port"],
        context=context,
        is_implicit=settings["transport"] == "tls",
        name=sender_domain,
    )
    timer = threading.Timer(WHOLE_SECONDS, _hang_up, (talk,))
    timer.daemon = True
    timer.start()
    try:
        verdict = _converse(talk, mail_message, settings, password, context)
    except Exception as error:  # noqa: BLE001  # whatever a server does wrong ends in words
        verdict = _trouble(error, talk)
    finally:
        timer.cancel()
        with contextlib.suppress(OSError):
            talk.close()
    if verdict.outcome != "delivered":
        talk.said.append(verdict.sentence)
    return verdict, "\n".join(talk.said)


def _hang_up(talk: Conversation) -> None:
    sock = talk.sock
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def _converse(
    talk: Conversation, message: EmailMessage, settings: dict[str, Any], password: str, context: ssl.SSLContext
) -> Verdict:
    code, told = talk.begin()
    if code != 220:
        return mail.interpret(code, told, phase="connect")
    talk.phase = "hello"
    talk.ehlo_or_helo_if_needed()
    if settings["transport"] == "starttls":
        talk.phase = "starttls"
        if not talk.has_extn("starttls"):
            return mail.interpret(502, "STARTTLS is not offered", phase="starttls")
        code, reply = talk.starttls(context=context)
        if code != 220:
            return mail.interpret(code, reply.decode(errors="replace"), phase="starttls")
        talk.ehlo_or_helo_if_needed()
    if password:
        talk.phase = "auth"
        try:
            talk.login(settings["username"], password)
        except smtplib.SMTPNotSupportedError:
            return Verdict("refused", _("The server offers no log-in on this port; look at port and encryption."))
    return _hand_over(talk, message, settings)


def _hand_over(talk: Conversation, message: EmailMessage, settings: dict[str, Any]) -> Verdict:
    raw = message.as_bytes()
    recipient = str(message["To"]).strip("<>")
    talk.phase = "sender"
    code, told = talk.mail(settings["sender"])
    if code != 250:
        return mail.interpret(code, told.decode(errors="replace"), phase="sender")
    talk.phase = "recipient"
    code, told = talk.rcpt(recipient)
    if code not in {250, 251}:
        return mail.interpret(code, told.decode(errors="replace"), phase="recipient")
    talk.phase = "data"
    code, told = talk.data(raw)
    verdict = mail.interpret(code, told.decode(errors="replace"), phase="data")
    talk.phase = "quit"
    with contextlib.suppress(OSError, smtplib.SMTPException):
        talk.quit()
    return verdict


def _trouble(error: Exception, talk: Conversation) -> Verdict:
    """Say what an exception of the session means."""
    if isinstance(error, smtplib.SMTPResponseException):
        told = (
            error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else str(error.smtp_error)
        )
        return mail.interpret(error.smtp_code, told, phase=talk.phase)
    refusal = _refusal(error)
    if refusal is not None:
        return refusal
    may_have_arrived = talk.is_body_sent and talk.phase == "data"
    if isinstance(error, httpcore.ConnectError | ConnectionRefusedError):
        return Verdict("retry", _("No connection: %(why)s") % {"why": error}, error_code="connect")
    if isinstance(error, smtplib.SMTPServerDisconnected | OSError):
        sentence = _("The server broke off or did not answer within %(seconds)s s, while: %(phase)s.")
        values = {"seconds": f"{WHOLE_SECONDS:.0f}", "phase": talk.phase}
        return Verdict("retry", sentence % values, error_code="silent", is_uncertain=may_have_arrived)
    name = type(error).__name__
    sentence = _("The session failed: %(why)s") % {"why": name}
    return Verdict("retry", sentence, error_code=name, is_uncertain=may_have_arrived)


def _refusal(error: Exception) -> Verdict | None:
    """Return the verdict of what will not work until somebody changes a setting."""
    if isinstance(error, AddressRefused):
        sentence = _("%(why)s. FLEETDECK_EGRESS_ALLOW names the private networks that it may reach.")
        return Verdict("refused", sentence % {"why": error}, error_code="address_refused")
    if isinstance(error, ssl.SSLCertVerificationError):
        sentence = _("The server's certificate does not hold: %(why)s")
        return Verdict("refused", sentence % {"why": error.verify_message}, error_code="certificate")
    if isinstance(error, ssl.SSLError):
        sentence = _("No TLS on this port: choose TLS with 465, STARTTLS with 587. (%(why)s)")
        return Verdict("refused", sentence % {"why": error.reason}, error_code="tls")
    return None
