"""From a lease to a message: gathers what the renderer needs, which itself reads no tables."""

from datetime import datetime
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import signing

from monitoring.delivery.leasing import Lease
from monitoring.delivery.models import Channel
from monitoring.delivery.recipients import Recipient, recipients_of
from monitoring.notifiers.compose import compose
from monitoring.notifiers.message import Context, Message
from panel.core.installation import install_id

STOP_SALT: Final = "delivery.stop"
STOP_DAYS: Final = 180
LONGEST_HOST: Final = 36  # longer ones would make a Message-ID that mail libraries break over two lines


def message_domain() -> str:
    """Return the right side of message ids: it names this installation, so that two panels never use the same."""
    host = (urlsplit(settings.PUBLIC_URL).hostname or "").lower()
    try:
        ip_address(host)
        host = ""
    except ValueError:
        pass
    if "." not in host or len(host) > LONGEST_HOST or not host.isascii():
        host = "fleetdeck.invalid"
    return f"{install_id()}.{host}"


def stop_url(channel: Channel, address: str) -> str:
    """Return the address at which a recipient takes themselves off a mail channel; empty without HTTPS, which mailers want."""
    if not address or not settings.IS_HTTPS:
        return ""
    token = signing.dumps({"channel": channel.pk, "address": address}, salt=STOP_SALT)
    return f"{settings.PUBLIC_URL.rstrip('/')}/mail/stop/{token}/"


def stop_asked(token: str) -> tuple[int, str] | None:
    """Return channel and address of such a link; None when it is forged or older than STOP_DAYS."""
    try:
        found = signing.loads(token, salt=STOP_SALT, max_age=STOP_DAYS * 86_400)
        return int(found["channel"]), str(found["address"])
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        return None


def message_of(lease: Lease, *, at: datetime) -> Message:
    """Return the message that this lease sends."""
    leader = lease.leader
    recipient = next(
        (each for each in recipients_of(lease.channel) if each.address == lease.recipient), Recipient(lease.recipient)
    )
    waited = max((at - row.first_try_at).total_seconds() for row in lease.parcel.rows if row.first_try_at is not None)
    failed = leader.escalated_from
    return compose(
        lease.parcel.parts,
        Context(
            panel_url=settings.PUBLIC_URL,
            domain=message_domain(),
            language=recipient.language,
            zone=recipient.zone,
            at=at,
            channel_name=lease.channel.name,
            recipient=lease.recipient,
            root_id=lease.root_id,
            delayed_seconds=waited,
            escalated_from=failed.channel_name if failed is not None else "",
            resend=leader.resend,
            stop_url=stop_url(lease.channel, lease.recipient),
        ),
    )
