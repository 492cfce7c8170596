"""What Alibaba Cloud's refusals mean."""

import json
import re

import pytest

from fleet.providers.aliyun import prices
from fleet.providers.aliyun.codes import failure
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.providers.http import Answer
from fleet.reasons import Reason
from tests.fakes.aliyun import HOME, FakeAliyun
from tests.providers.opening import answering
from tests.providers.spec import needed

SPEC = "alibaba/ecs-2014-05-26.subset.described.json"


@pytest.fixture
def fake():
    prices.forget()
    yield FakeAliyun()
    prices.forget()


def answer_of(status):
    return Answer(status, {}, "")


# Errors


@pytest.mark.parametrize(
    ("status", "code", "kind", "reason"),
    [
        (403, "OperationDenied.NoStock", Refused, Reason.NO_CAPACITY),
        (403, "Zone.NotOnSale", Refused, Reason.NO_CAPACITY),
        (400, "ResourceNotAvailable", Refused, Reason.NO_CAPACITY),
        (400, "LackResource", Refused, Reason.NO_CAPACITY),
        (403, "InsufficientBalance", Refused, Reason.NO_BALANCE),
        (400, "InsufficientBalance.AgentCredit", Refused, Reason.NO_BALANCE),
        (403, "InvalidAccountStatus.NotEnoughBalance", Refused, Reason.NO_BALANCE),
        (403, "InvalidPayMethod", Refused, Reason.NO_BALANCE),
        (404, "PaymentMethodNotFound", Refused, Reason.NO_BALANCE),
        (400, "Account.Arrearage", Refused, Reason.NO_BALANCE),
        (403, "InstanceExpiredOrInArrears", Refused, Reason.NO_BALANCE),
        (403, "InstanceExpired", Refused, Reason.CONTRACT_ENDED),
        (400, "QuotaExceed.AfterpayInstance", Refused, Reason.NO_QUOTA),
        (403, "QuotaExceed.ElasticQuota", Refused, Reason.NO_QUOTA),
        (400, "OperationDenied.QuotaExceed", Refused, Reason.NO_QUOTA),
        (400, "AccountForbidden.ProductCreationLimited", Refused, Reason.NO_QUOTA),
        (400, "InvalidSpotPriceLimit.LowerThanPublicPrice", Refused, Reason.PRICE_ABOVE_MAX),
        (403, "OperationDenied.SpotPriceLowerThanPublicPrice", Refused, Reason.PRICE_ABOVE_MAX),
        (403, "InstanceType.Offline", Refused, Reason.NO_OFFER),
        (400, "InvalidInstanceType.ValueNotSupported", Refused, Reason.NO_OFFER),
        (403, "IncorrectInstanceStatus", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "IncorrectInstanceStatus.Initializing", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "InstanceLockedForSecurity", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "InvalidOperation.DeletionProtection", Refused, Reason.NOT_ALLOWED_NOW),
        (403, "ChargeTypeViolation", Refused, Reason.NOT_SUPPORTED),
        (404, "InvalidImageId.NotFound", Refused, Reason.REQUEST_REFUSED),
        (404, "InvalidVSwitchId.NotFound", Refused, Reason.REQUEST_REFUSED),
        (403, "InvalidUserData.Forbidden", Refused, Reason.REQUEST_REFUSED),
        (404, "InvalidInstanceId.NotFound", NotThere, Reason.PROVIDER_DELETED),
        (400, "Throttling", Throttled, Reason.RATE_LIMITED),
        (400, "Throttling.User", Throttled, Reason.RATE_LIMITED),
        (429, "Throttling.Resource", Throttled, Reason.RATE_LIMITED),
        (404, "InvalidAccessKeyId.NotFound", AccessRefused, Reason.AUTH_FAILED),
        (403, "InvalidAccessKeyId.Inactive", AccessRefused, Reason.AUTH_FAILED),
        (400, "SignatureDoesNotMatch", AccessRefused, Reason.AUTH_FAILED),
        (400, "IncompleteSignature", AccessRefused, Reason.AUTH_FAILED),
        (403, "Forbidden.RAM", AccessRefused, Reason.PERMISSION_MISSING),
        (403, "Forbbiden", AccessRefused, Reason.PERMISSION_MISSING),
        (400, "NotAuthorized", AccessRefused, Reason.PERMISSION_MISSING),
        (500, "InternalError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (403, "Mayi.InternalError", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (503, "ServiceUnavailable", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (400, "IdempotenceParamNotMatch", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
        (400, "Idempotence.Processing", OutcomeUnknown, Reason.OUTCOME_UNKNOWN),
    ],
)
def test_each_error_code_has_its_reason(status, code, kind, reason):
    found = failure(answer_of(status), code, "words", is_write=True)
    assert (type(found), found.reason, found.raw_code) == (kind, reason, code)


def test_an_internal_error_of_a_read_is_the_provider_being_down():
    assert type(failure(answer_of(400), "InternalError", "words", is_write=False)) is Unavailable


def test_every_documented_code_of_the_calls_in_use_is_a_definite_no_or_an_unknown_outcome():
    apis = json.loads(needed(SPEC).read_text(encoding="utf-8"))["apis"]
    codes = {
        (int(status), each["errorCode"])
        for action in ("RunInstances", "StartInstance", "StopInstance", "RebootInstance", "DeleteInstance")
        for status, errors in apis[action]["errorCodes"].items()
        for each in errors
    }
    assert len(codes) > 300
    for status, code in codes:
        found = failure(answer_of(status), code, "words", is_write=True)
        assert found.is_definite != (
            "InternalError" in code or (status >= 500 and found.reason == Reason.OUTCOME_UNKNOWN)
        )
        if re.search(r"NoStock|NotOnSale", code):
            assert found.reason == Reason.NO_CAPACITY
        if re.search(r"^Quota|Balance", code):
            assert found.reason in {Reason.NO_QUOTA, Reason.NO_BALANCE}


def test_bss_says_no_inside_a_200(fake):
    answers = [
        (200, {"Arn": "acs:ram::1:user/x"}),
        (400, {"Code": "DryRunOperation", "Message": "passed"}),
        (200, {"Code": "NotAuthorized", "Message": "no", "Success": False}),
        (400, {"Code": "MissingParameter", "Message": "ImageId"}),
    ]
    check = answering("aliyun", fake.credentials, *answers, options={"regions": HOME}).check()
    assert (check.permissions["billing"], check.balance) == (False, None)


@pytest.mark.parametrize("status", [403, 404, 410])
@pytest.mark.parametrize("body", ["<html>blocked</html>", "not found", "{}"], ids=["page", "text", "object"])
def test_somebody_in_between_never_makes_a_machine_vanish(fake, status, body):
    provider = answering("aliyun", fake.credentials, *[(status, body)] * 2)
    with pytest.raises(Unavailable):
        provider.machine(f"{HOME}:i-1")
    with pytest.raises(OutcomeUnknown):
        provider.terminate(f"{HOME}:i-1")
