"""What Alibaba Cloud's error codes mean for us.

Codes come as `Family.Detail`, with families that say nothing by themselves (OperationDenied, InvalidParameter), so the first
fragment found wins and the longer ones stand first. Source: the error codes of the ECS API 2014-05-26.
"""

from typing import Final

from fleet.providers.base import reason_of
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    OutcomeUnknown,
    ProviderError,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.providers.http import Answer, retry_after_seconds, sentence
from fleet.reasons import Reason

DRY_RUN_PASSED: Final = "DryRunOperation"
_KEY: Final = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "IncompleteSignature",
    "InvalidSecurityToken",
    "MissingSecurityToken",
    "MissingAccessKeyId",
)
_PERMISSION: Final = (
    "Forbidden",
    "Forbbiden",  # so spelt by the provider
    "NoPermission",
    "NotAuthorized",
    "InvalidUser.PassRoleForbidden",
    "InvalidAction.Unauthorized",
)
# An earlier request with the same client token is under way, or had other parameters: a machine of ours may be there.
_TOKEN_IN_USE: Final = ("Idempotence", "Idempotent", "LastTokenProcessing")
_MACHINE_UNKNOWN: Final = ("InvalidInstanceId.NotFound", "Invalid.InstanceId.NotFound")
_REASONS: Final = (
    ("SpotPriceLowerThanPublicPrice", Reason.PRICE_ABOVE_MAX),
    ("LowerThanPublicPrice", Reason.PRICE_ABOVE_MAX),
    ("NoStock", Reason.NO_CAPACITY),
    ("Zone.NotOnSale", Reason.NO_CAPACITY),
    ("Zone.NotOpen", Reason.NO_CAPACITY),
    ("ResourceNotAvailable", Reason.NO_CAPACITY),
    ("NotEnoughResource", Reason.NO_CAPACITY),
    ("LackResource", Reason.NO_CAPACITY),
    ("NodeControllerUnavailable", Reason.NO_CAPACITY),
    ("InstanceType.Offline", Reason.NO_OFFER),
    ("PaygNotAvailable", Reason.NO_OFFER),
    ("PrepayNotAvailable", Reason.NO_OFFER),
    ("SpotNotSupported", Reason.NO_OFFER),
    ("InvalidInstanceType.", Reason.NO_OFFER),
    ("InsufficientBalance", Reason.NO_BALANCE),
    ("NotEnoughBalance", Reason.NO_BALANCE),
    ("PayAmountLimitExceeded", Reason.NO_BALANCE),
    ("Account.Arrearage", Reason.NO_BALANCE),
    ("InvalidPayMethod", Reason.NO_BALANCE),
    ("PaymentMethodNotFound", Reason.NO_BALANCE),
    ("UnPaidOrder", Reason.NO_BALANCE),
    ("InArrears", Reason.NO_BALANCE),
    ("InstanceExpired", Reason.CONTRACT_ENDED),
    ("QuotaExceed", Reason.NO_QUOTA),
    ("QuotaFull", Reason.NO_QUOTA),
    ("ProductCreationLimited", Reason.NO_QUOTA),
    ("SecurityGroupInstanceLimitExceed", Reason.NO_QUOTA),
    ("ChargeTypeViolation", Reason.NOT_SUPPORTED),
    ("IncorrectInstanceStatus", Reason.NOT_ALLOWED_NOW),
    ("InstanceNotReady", Reason.NOT_ALLOWED_NOW),
    ("InstanceLockedForSecurity", Reason.NOT_ALLOWED_NOW),
    ("DeletionProtection", Reason.NOT_ALLOWED_NOW),
    ("EniLinked", Reason.NOT_ALLOWED_NOW),
    ("HostRepairing", Reason.NOT_ALLOWED_NOW),
    ("DependencyViolation", Reason.NOT_ALLOWED_NOW),
    ("DiskError", Reason.NOT_ALLOWED_NOW),
    ("SignatureNonceUsed", Reason.NOT_ALLOWED_NOW),
    ("RegionUnauthorized", Reason.PERMISSION_MISSING),
    ("UserNotInTheWhiteList", Reason.PERMISSION_MISSING),
)


def failure(answer: Answer, code: str, message: str, *, is_write: bool) -> ProviderError:
    """Return what an answer with an error code means; nothing was done unless it is OutcomeUnknown."""
    words = sentence(message) or sentence(code) or f"HTTP {answer.status}"
    if code.startswith("Throttling") or answer.status == 429:
        return Throttled(words, raw_code=code, retry_after_seconds=retry_after_seconds(answer.headers))
    if code.startswith((*_KEY, *_PERMISSION)):
        reason = Reason.AUTH_FAILED if code.startswith(_KEY) else Reason.PERMISSION_MISSING
        return AccessRefused(words, reason=reason, raw_code=code)
    if code in _MACHINE_UNKNOWN:
        return NotThere(words, raw_code=code)
    reason = reason_of(code, _REASONS, Reason.REQUEST_REFUSED)
    is_broken = reason == Reason.REQUEST_REFUSED and (answer.status >= 500 or "InternalError" in code)
    if is_write and (is_broken or code.startswith(_TOKEN_IN_USE)):
        return OutcomeUnknown(words, raw_code=code)
    return Unavailable(words, raw_code=code) if is_broken else Refused(words, reason=reason, raw_code=code)
