"""AutoDL: release only when off, errors inside HTTP 200, lists of another form."""

import json
from datetime import UTC, datetime

import httpx
import pytest

from fleet.providers.autodl.client import PAGE_SIZE
from fleet.providers.base import Billing
from fleet.providers.errors import (
    AccessRefused,
    NotThere,
    NotUnderstood,
    OutcomeUnknown,
    Refused,
    Throttled,
    Unavailable,
)
from fleet.reasons import Reason
from panel.core.money import Money
from tests.fakes.autodl import PRO, FakeAutoDl, failure, success
from tests.providers.autodl_account import answering, opened, order, sent
from tests.providers.spec import needed


@pytest.fixture
def vendor():
    fake = FakeAutoDl()
    yield fake
    assert fake.complaints() == []


# Ending, stopping, images


def test_a_running_machine_is_switched_off_before_it_is_released(vendor):
    machine = vendor.add("box")
    provider = opened(vendor)
    provider.terminate(machine.id)
    assert sent(vendor, f"{PRO}/release") == []
    provider.terminate(machine.id)  # still shutting down: nothing more is sent
    assert len(sent(vendor, f"{PRO}/power_off")) == 1
    vendor.advance()
    provider.terminate(machine.id)
    assert sent(vendor, f"{PRO}/release") == [{"instance_uuid": machine.id}]
    provider.terminate(machine.id)  # being released: nothing more is sent
    vendor.advance()
    assert provider.machine(machine.id) is None


def test_starting_asks_for_cards_and_may_find_none(vendor):
    machine = vendor.add("box", status="stopped")
    vendor.has_capacity = False
    with pytest.raises(Refused) as refused:
        opened(vendor).start(machine.id)
    assert refused.value.reason == Reason.NO_CAPACITY
    assert sent(vendor, f"{PRO}/power_on") == [{"instance_uuid": machine.id, "payload": "gpu"}]


def test_an_image_is_saved_of_a_machine_that_is_off(vendor):
    machine = vendor.add("box")
    provider = opened(vendor)
    with pytest.raises(Refused) as refused:
        provider.snapshot(machine.id, "before")
    assert refused.value.reason == Reason.NOT_ALLOWED_NOW
    machine.status = "stopped"
    image_id = provider.snapshot(machine.id, "before")
    [saved] = provider.snapshots()
    assert (saved.external_id, saved.name, saved.status) == (image_id, "before", "saving")
    assert saved.created_at == datetime(2026, 11, 30, 8, tzinfo=UTC)


def test_stopping_saves_all_but_the_disk():
    effect = opened(FakeAutoDl()).stop_effect(Billing.HOURLY)
    assert effect.saves_compute is True
    assert list(effect.keeps_billing) == ["disk"]
    assert "15" in str(effect.note)


# Errors


@pytest.mark.parametrize(
    ("code", "msg", "error", "reason"),
    [
        ("BadRequest", "无当前资源访问权限", AccessRefused, Reason.PERMISSION_MISSING),
        ("TORealName", "未完成实名认证,认证后才可使用", AccessRefused, Reason.PERMISSION_MISSING),
        ("AuthorizeFailed", "登录超时，请重新登录", AccessRefused, Reason.AUTH_FAILED),
        ("InternalError", "当前算力规格暂无库存, 请修改配置或稍等再试", Refused, Reason.NO_CAPACITY),
        ("InternalError", "保存实例镜像前，请确保实例是关机状态", Refused, Reason.NOT_ALLOWED_NOW),
        ("InternalError", "账户余额不足", Refused, Reason.NO_BALANCE),
        ("InternalError", "实例数量已达上限", Refused, Reason.NO_QUOTA),
        ("RequestParameterIsWrong", "请求参数错误", Refused, Reason.REQUEST_REFUSED),
        ("TooManyRequests", "操作过于频繁", Throttled, Reason.RATE_LIMITED),
        ("RecordNotFoundError", "未查询到相关实例", NotThere, Reason.PROVIDER_DELETED),
    ],
)
def test_an_error_inside_http_200_has_its_reason(code, msg, error, reason):
    with pytest.raises(error) as told:
        answering(failure(code, msg)).stop("pro-1")
    assert (told.value.reason, told.value.raw_code, told.value.message) == (reason, code, msg)
    assert told.value.is_definite


def test_the_documented_errors_are_all_told_apart():
    documented = json.loads(needed("autodl/errors.json").read_text(encoding="utf-8"))
    for entry in documented:
        with pytest.raises((AccessRefused, Refused, NotThere)):
            answering(httpx.Response(entry["http"], json=entry["body"])).stop("pro-1")


def test_an_internal_error_without_known_words_leaves_the_outcome_of_a_write_open():
    broken = answering(failure("InternalError", "系统繁忙"))
    with pytest.raises(OutcomeUnknown):
        broken.create(order())
    with pytest.raises(Unavailable):
        broken.machines()


@pytest.mark.parametrize("status", [401, 403])
def test_an_http_refusal_of_the_key_is_one_whatever_the_code_says(status):
    with pytest.raises(AccessRefused):
        answering(httpx.Response(status, json={"code": "Odd", "msg": "no"})).machines()


def test_an_answer_that_is_no_envelope_is_not_understood_and_after_a_write_unknown():
    page = httpx.Response(200, text="<html>maintenance</html>")
    with pytest.raises(NotUnderstood):
        answering(page).machines()
    with pytest.raises(OutcomeUnknown):
        answering(page).create(order())
    with pytest.raises(OutcomeUnknown):
        answering(success({"instance_uuid": "pro-1"})).create(order())


# Odd lists


def test_an_empty_account_whose_list_is_null_has_no_machines():
    assert answering(success({"list": None, "page_index": 1, "max_page": 0, "result_total": 0})).machines() == []


def test_a_list_without_counts_ends_at_its_first_short_page():
    assert len(answering(success({"list": [{"uuid": "pro-1", "status": "shutdown"}]})).machines()) == 1


@pytest.mark.parametrize(
    "data",
    [
        {"list": {"uuid": "pro-1"}},
        {"list": [None]},
        [],
        {"list": [{"uuid": "pro-1"}, {"uuid": "pro-1"}]},
        {"list": [{"uuid": "pro-1"}], "max_page": 1, "result_total": 2},
        {"list": [], "max_page": 3},
        {"list": [{"uuid": f"pro-{number}"} for number in range(PAGE_SIZE)]},
    ],
    ids=["object", "null_entry", "no_object", "twice", "fewer", "empty_before_the_end", "the_same_page_again"],
)
def test_a_list_of_another_form_is_no_list(data):
    with pytest.raises(NotUnderstood):
        answering(success(data)).machines()


def test_the_wallet_is_the_balance_and_a_cloud_without_one_has_none(vendor):
    assert opened(vendor).check().balance == Money.of("29.29", "CNY")
    assert opened(vendor).check().identity == "282383"
    answer = vendor.answer
    vendor.answer = lambda request: httpx.Response(404) if "wallet" in request.url.path else answer(request)
    assert opened(vendor).check().balance is None
