"""SMTP servers of common providers, and what each wants as a password."""

from dataclasses import dataclass
from typing import Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Transport = Literal["tls", "starttls", "none"]


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider. transport: tls from the first byte, or after STARTTLS. hint: which password it wants."""

    code: str
    name: str | Promise
    host: str
    port: int
    transport: Transport
    hint: str | Promise


_AUTHORISATION_CODE = _(
    "The password is the authorisation code from the mailbox's settings (SMTP), not the log-in password."
)
PRESETS: Final[tuple[Preset, ...]] = (
    Preset("qq", _("QQ Mail"), "smtp.qq.com", 465, "tls", _AUTHORISATION_CODE),
    Preset("163", _("NetEase 163 Mail"), "smtp.163.com", 465, "tls", _AUTHORISATION_CODE),
    Preset("126", _("NetEase 126 Mail"), "smtp.126.com", 465, "tls", _AUTHORISATION_CODE),
    Preset(
        "aliyun", _("Alibaba Mail (enterprise)"), "smtp.qiye.aliyun.com", 465, "tls",
        _("The mailbox's password, or its third-party client password where that is switched on."),
    ),
    Preset("exmail", _("Tencent Exmail"), "smtp.exmail.qq.com", 465, "tls", _AUTHORISATION_CODE),
    Preset(
        "gmail", "Gmail", "smtp.gmail.com", 587, "starttls",
        _("An app password: Google takes no other; it wants two-step verification first."),
    ),
    Preset(
        "outlook", "Outlook / Microsoft 365", "smtp.office365.com", 587, "starttls",
        _("The administrator must allow authenticated SMTP for the mailbox; with security defaults on it is refused."),
    ),
)  # fmt: skip
