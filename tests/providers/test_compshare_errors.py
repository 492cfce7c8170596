"""Compshare: RetCode inside HTTP 200, and lists of another form."""

import httpx
import pytest

from fleet.providers.compshare.client import PAGE_SIZE
from fleet.providers.errors import (
    AccessRefused,
    NotUnderstood,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.reasons import Reason
from tests.fakes.compshare import FakeCompshare, failure, success
from tests.providers.compshare_account import instead, opened, order


@pytest.fixture
def vendor():
    fake = FakeCompshare()
    yield fake
    assert fake.complaints() == []


# Errors


@pytest.mark.parametrize(
    ("code", "message", "error", "reason"),
    [
        (171, "Signature VerifyAC Error", AccessRefused, Reason.AUTH_FAILED),
        (172, "User Not Exists", AccessRefused, Reason.AUTH_FAILED),
        (299, "IAM permission error", AccessRefused, Reason.PERMISSION_MISSING),
        (226606, "账号未实名认证，请先实名认证", AccessRefused, Reason.PERMISSION_MISSING),
        (161, "Action not exist", Refused, Reason.NOT_SUPPORTED),
        (230, "Params [GpuType] not available", Refused, Reason.REQUEST_REFUSED),
        (520, "Lack of balance", Refused, Reason.NO_BALANCE),
        (8333, "cpu memory ratio not in 2:1 - 1:12", Refused, Reason.NO_OFFER),
        (226601, "实例已欠费，请前往订单管理支付欠费订单", Refused, Reason.NO_BALANCE),
        (226602, "实例已过期，请前往续费管理执行续费操作", Refused, Reason.CONTRACT_ENDED),
        (226603, "所选镜像不支持该卡型", Refused, Reason.REQUEST_REFUSED),
        (226604, "当前资源不足，请稍后再试", Refused, Reason.NO_CAPACITY),
        (226605, "更新镜像使用时长任务已存在", Refused, Reason.NOT_ALLOWED_NOW),
        (90001, "InstanceOperationInProgress", Refused, Reason.NOT_ALLOWED_NOW),
        (90002, "账户存在未支付订单", Refused, Reason.NO_BALANCE),
        (90003, "instance quota exceeded", Refused, Reason.NO_QUOTA),
        (90004, "request too frequently", Throttled, Reason.RATE_LIMITED),
        (90005, "balance not enough", Refused, Reason.NO_BALANCE),
        (90006, "something new", Refused, Reason.REQUEST_REFUSED),
    ],
)
def test_a_code_inside_http_200_has_its_reason(vendor, code, message, error, reason):
    machine = vendor.add("box")
    instead(vendor, "RebootCompShareInstance", failure(code, message))
    with pytest.raises(error) as told:
        opened(vendor).reboot(machine.id)
    assert (told.value.reason, told.value.raw_code, told.value.message) == (reason, str(code), message)
    assert told.value.is_definite


def test_a_failure_of_the_service_leaves_the_outcome_of_a_write_open(vendor):
    instead(vendor, "CreateCompShareInstance", failure(8433, "服务异常，请联系技术支持"))
    with pytest.raises(OutcomeUnknown):
        opened(vendor).create(order())
    instead(vendor, "DescribeCompShareInstance", failure(8433, "服务异常，请联系技术支持"))
    with pytest.raises(Unavailable):
        opened(vendor).machines()


@pytest.mark.parametrize("body", ["<html>maintenance</html>", "[]", "{}", '{"RetCode": "odd"}'])
def test_an_answer_without_a_code_is_not_understood_and_after_a_write_unknown(vendor, body):
    instead(vendor, "DescribeCompShareInstance", httpx.Response(200, text=body))
    with pytest.raises(NotUnderstood):
        opened(vendor).machines()
    instead(vendor, "CreateCompShareInstance", httpx.Response(200, text=body))
    with pytest.raises(OutcomeUnknown):
        opened(vendor).create(order())


# Odd lists


@pytest.mark.parametrize("total", [1, "1"], ids=["number", "text"])
def test_one_machine_by_itself_under_the_plural_key_is_one(vendor, total):
    machine = vendor.add("box")
    instead(vendor, "DescribeCompShareInstance", success(TotalCount=total, UHostSet=vendor.host(machine)))
    assert [each.name for each in opened(vendor).machines()] == ["box"]


@pytest.mark.parametrize(
    "members",
    [{"TotalCount": 0, "UHostSet": None}, {"TotalCount": 0}, {}],
    ids=["null", "absent", "nothing"],
)
def test_an_empty_account_has_no_machines(vendor, members):
    instead(vendor, "DescribeCompShareInstance", success(**members))
    assert opened(vendor).machines() == []


@pytest.mark.parametrize(
    "members",
    [
        {"TotalCount": 1, "UHostSet": "one"},
        {"TotalCount": 1, "UHostSet": [None]},
        {"TotalCount": 1, "UHostSet": [{"UHostId": "u"}, {"UHostId": "u"}]},
        {"TotalCount": 1, "UHostSet": [{"UHostId": "u"}, {"UHostId": "v"}]},
        {"TotalCount": 3, "UHostSet": [{"UHostId": "u"}]},
        {"TotalCount": 3, "UHostSet": []},
        {"UHostSet": [{"UHostId": f"u{number}"} for number in range(PAGE_SIZE)]},
    ],
    ids=["text", "null_entry", "twice", "more_than_told", "same_page_again", "breaks_off", "full_page_without_a_count"],
)
def test_a_list_of_another_form_is_no_list(vendor, members):
    instead(vendor, "DescribeCompShareInstance", success(**members))
    with pytest.raises(NotUnderstood):
        opened(vendor).machines()


def test_no_zones_would_mean_no_machines_and_is_therefore_an_error(vendor):
    vendor.add("box")
    instead(vendor, "DescribeCompShareSupportZone", success(ZoneInfo=[]))
    with pytest.raises(NotUnderstood):
        opened(vendor).machines()


def test_what_a_key_may_not_list_is_told_by_the_check(vendor):
    instead(vendor, "DescribeCompShareInstance", failure(299, "IAM permission error"))
    assert opened(vendor).check().permissions == {"list": False, "order": None}
