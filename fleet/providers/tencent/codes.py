"""What Tencent Cloud's error codes mean for us.

Codes come as `Family.Detail`; the first fragment found wins, so the longer ones stand first. Source: the common error codes
of API 3.0 and those of CVM 2017-03-12.
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
from fleet.providers.http import sentence
from fleet.reasons import Reason

DRY_RUN_PASSED: Final = "DryRunOperation"
ENDING_ALREADY: Final = "UnsupportedOperation.InstanceStateTerminating"
_PERMISSION: Final = (
    "AuthFailure.UnauthorizedOperation",
    "AuthFailure.CamRoleNameAuthenticateFailed",
    "UnauthorizedOperation",
)
# A clock that is off is no reason to take a key for void; the provider's words say what is wrong.
_CLOCK: Final = "AuthFailure.SignatureExpire"
_MACHINE_UNKNOWN: Final = (
    "InvalidInstanceId.NotFound",
    "ResourceNotFound.InvalidInstanceIdNotFound",
    "UnsupportedOperation.InstanceStateTerminated",
)
_BROKEN: Final = ("InternalError", "InternalServerError")
_REASONS: Final = (
    ("InsufficientPrice", Reason.PRICE_ABOVE_MAX),
    ("InsufficientBalance", Reason.NO_BALANCE),
    ("BalanceInsufficient", Reason.NO_BALANCE),
    ("InvalidAccount.UnpaidOrder", Reason.NO_BALANCE),
    ("ResourceInsufficient.CidrBlock", Reason.REQUEST_REFUSED),
    ("ResourceInsufficient.InsufficientGroupQuota", Reason.NO_QUOTA),
    ("ResourceInsufficient.DisasterRecoverGroupCvmQuota", Reason.NO_QUOTA),
    ("ResourceInsufficient", Reason.NO_CAPACITY),
    ("SoldOut", Reason.NO_CAPACITY),
    ("InsufficientOffering", Reason.NO_CAPACITY),
    ("ResourceUnavailable.InstanceType", Reason.NO_CAPACITY),
    ("NoInstanceTypeSupportSpot", Reason.NO_OFFER),
    ("SpotUnsupportedRegion", Reason.NO_OFFER),
    ("InvalidZoneInstanceType", Reason.NO_OFFER),
    ("InstanceTypeNotFound", Reason.NO_OFFER),
    ("ZoneNotSupported", Reason.NO_OFFER),
    ("UserReturnQuota", Reason.NOT_SUPPORTED),
    ("InvalidParameterValue.LimitExceeded", Reason.REQUEST_REFUSED),
    ("InvalidFilterValue.LimitExceeded", Reason.REQUEST_REFUSED),
    ("LimitExceeded", Reason.NO_QUOTA),
    ("OverQuota", Reason.NO_QUOTA),
    ("Quota", Reason.NO_QUOTA),
    ("StoppedModeStopCharging", Reason.NOT_SUPPORTED),
    ("Unreturnable", Reason.NOT_SUPPORTED),
    ("UnsupportedOperation.InstanceChargeType", Reason.NOT_SUPPORTED),
    ("InstanceTerminateUnsupported", Reason.NOT_SUPPORTED),
    ("InvalidInstanceNotSupportedPrepaidInstance", Reason.NOT_SUPPORTED),
    ("UnsupportedOperation.InstanceState", Reason.NOT_ALLOWED_NOW),
    ("InvalidInstanceState", Reason.NOT_ALLOWED_NOW),
    ("InstancesProtected", Reason.NOT_ALLOWED_NOW),
    ("ProtectedInstance", Reason.NOT_ALLOWED_NOW),
    ("InstanceOperationInProgress", Reason.NOT_ALLOWED_NOW),
    ("MutexOperation", Reason.NOT_ALLOWED_NOW),
    ("ResourceInUse", Reason.NOT_ALLOWED_NOW),
)


def failure(code: str, message: str, *, is_write: bool) -> ProviderError:
    """Return what an error inside an answer means; nothing was done unless it is OutcomeUnknown."""
    words = sentence(message) or sentence(code)
    if code.startswith("RequestLimitExceeded"):
        return Throttled(words, raw_code=code)
    if code.startswith(_PERMISSION):
        return AccessRefused(words, reason=Reason.PERMISSION_MISSING, raw_code=code)
    if code.startswith("AuthFailure") and code != _CLOCK:
        return AccessRefused(words, raw_code=code)
    if code in _MACHINE_UNKNOWN:
        return NotThere(words, raw_code=code)
    if code.startswith(_BROKEN):
        return (OutcomeUnknown if is_write else Unavailable)(words, raw_code=code)
    return Refused(words, reason=reason_of(code, _REASONS, Reason.REQUEST_REFUSED), raw_code=code)
