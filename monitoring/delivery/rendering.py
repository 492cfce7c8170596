"""From a lease to a message: gathers what the renderer needs, which itself reads no tables."""

from datetime import datetime
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

from monitoring.delivery.leasing import Lease
from monitoring.delivery.recipients import Recipient, recipients_of
from monitoring.notifiers.compose import compose
from monitoring.notifiers.message import Context, Message
from panel.core.installation import install_id

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
        ),
    )
