"""What Tencent Cloud's refusals mean."""

import pytest

from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.providers.tencent.codes import failure
from fleet.reasons import Reason
from tests.fakes.tencent import HOME, FakeTencent
from tests.providers.opening import answering


@pytest.fixture
def fake():
    return FakeTencent()


# Errors


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        ("ResourceInsufficient.SpecifiedInstanceType", Refused, Reason.NO_CAPACITY),
        ("ResourceInsufficient.ZoneSoldOutForSpecifiedInstance", Refused, Reason.NO_CAPACITY),
        ("ResourcesSoldOut.SpecifiedInstanceType", Refused, Reason.NO_CAPACITY),
        ("ResourcesSoldOut.AvailableZone", Refused, Reason.NO_CAPACITY),
        ("ResourceUnavailable.InstanceType", Refused, Reason.NO_CAPACITY),
        ("InvalidParameterValue.InsufficientOffering", Refused, Reason.NO_CAPACITY),
        ("ResourceInsufficient.CidrBlock", Refused, Reason.REQUEST_REFUSED),
        ("InvalidAccount.InsufficientBalance", Refused, Reason.NO_BALANCE),
        ("InvalidAccount.UnpaidOrder", Refused, Reason.NO_BALANCE),
        ("InvalidParameterValue.InsufficientPrice", Refused, Reason.PRICE_ABOVE_MAX),
        ("LimitExceeded.InstanceQuota", Refused, Reason.NO_QUOTA),
        ("LimitExceeded.SpotQuota", Refused, Reason.NO_QUOTA),
        ("LimitExceeded.UserSpotQuota", Refused, Reason.NO_QUOTA),
        ("InstancesQuotaLimitExceeded", Refused, Reason.NO_QUOTA),
        ("OverQuota", Refused, Reason.NO_QUOTA),
        ("LimitExceeded.UserReturnQuota", Refused, Reason.NOT_SUPPORTED),
        ("FailedOperation.Unreturnable", Refused, Reason.NOT_SUPPORTED),
        ("UnsupportedOperation.StoppedModeStopCharging", Refused, Reason.NOT_SUPPORTED),
        ("UnsupportedOperation.InstanceStateStopped", Refused, Reason.NOT_ALLOWED_NOW),
        ("UnsupportedOperation.InstanceStateTerminating", Refused, Reason.NOT_ALLOWED_NOW),
        ("OperationDenied.InstanceOperationInProgress", Refused, Reason.NOT_ALLOWED_NOW),
        ("MutexOperation.TaskRunning", Refused, Reason.NOT_ALLOWED_NOW),
        ("UnsupportedOperation.InstancesProtected", Refused, Reason.NOT_ALLOWED_NOW),
        ("ResourceNotFound.InvalidZoneInstanceType", Refused, Reason.NO_OFFER),
        ("UnsupportedOperation.NoInstanceTypeSupportSpot", Refused, Reason.NO_OFFER),
        ("InvalidImageId.NotFound", Refused, Reason.REQUEST_REFUSED),
        ("InvalidParameterValue.LimitExceeded", Refused, Reason.REQUEST_REFUSED),
        ("AuthFailure.SignatureExpire", Refused, Reason.REQUEST_REFUSED),
        ("InvalidInstanceId.NotFound", NotThere, Reason.PROVIDER_DELETED),
        ("ResourceNotFound.InvalidInstanceIdNotFound", NotThere, Reason.PROVIDER_DELETED),
        ("RequestLimitExceeded", Throttled, Reason.RATE_LIMITED),
        ("RequestLimitExceeded.UinLimitExceeded", Throttled, Reason.RATE_LIMITED),
        ("AuthFailure.SecretIdNotFound", AccessRefused, Reason.AUTH_FAILED),
        ("AuthFailure.SignatureFailure", AccessRefused, Reason.AUTH_FAILED),
        ("AuthFailure.UnauthorizedOperation", AccessRefused, Reason.PERMISSION_MISSING),
        ("UnauthorizedOperation.CamNoAuth", AccessRefused, Reason.PERMISSION_MISSING),
        ("InternalError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        ("InternalError.TradeUnknownError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        ("InternalServerError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_each_error_code_has_its_reason(code, kind, reason):
    found = failure(code, "words", is_write=True)
    assert (type(found), found.reason, found.raw_code) == (kind, reason, code)


@pytest.mark.parametrize("status", [403, 404, 410])
@pytest.mark.parametrize("body", ["<html>blocked</html>", "not found", "{}"], ids=["page", "text", "object"])
def test_somebody_in_between_never_makes_a_machine_vanish(fake, status, body):
    provider = answering("tencent", fake.credentials, *[(status, body)] * 2)
    with pytest.raises(Unavailable):
        provider.machine(f"{HOME}:ins-1")
    with pytest.raises(OutcomeUnknown):
        provider.terminate(f"{HOME}:ins-1")


def test_an_internal_error_of_a_read_is_the_provider_being_down():
    assert type(failure("InternalError", "words", is_write=False)) is Unavailable
