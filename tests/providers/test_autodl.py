"""What is special about AutoDL: thousandths of a yuan, no catalogue, a start command that runs at every start."""

import base64
import json
import subprocess
from datetime import UTC, datetime

import pytest

from fleet.providers.autodl.adapter import PRIVATE
from fleet.providers.autodl.catalogue import SPECS
from fleet.providers.autodl.machines import STATUS, start_command
from fleet.providers.base import Billing, MachineStatus, Stock
from fleet.providers.errors import (
    Refused,
)
from panel.core.money import Money
from tests.fakes.autodl import BODIES, PASSWORD, PRO, FakeAutoDl, failure
from tests.providers.autodl_account import opened, order, sent
from tests.providers.spec import needed


@pytest.fixture
def vendor():
    fake = FakeAutoDl()
    yield fake
    assert fake.complaints() == []


# Requests


def test_the_token_stands_bare_in_its_header(vendor):
    opened(vendor).check()
    assert {request.headers["authorization"] for request in vendor.requests} == {vendor.credentials["token"]}


def test_a_read_of_one_machine_has_its_id_in_the_query_and_no_body(vendor):
    vendor.add("box")
    opened(vendor).machines()
    [read] = [request for request in vendor.requests if request.method == "GET"]
    assert read.url.path == f"{PRO}/snapshot"
    assert dict(read.url.params) == {"instance_uuid": next(iter(vendor.machines))}
    assert read.content == b""


def test_the_private_cloud_is_another_address(vendor):
    vendor.host = "private.autodl.com"
    vendor.add("box")
    assert [machine.name for machine in opened(vendor, base_url=PRIVATE).machines()] == ["box"]


def test_an_order_says_what_the_documentation_lists(vendor):
    opened(vendor).create(order(options={"image": "image-1", "region": "westDC3", "cuda_from": "124", "disk_gb": "80"}))
    [body] = sent(vendor, f"{PRO}/create")
    command = body.pop("start_command")
    assert base64.b64encode(order().startup_script.encode()).decode() in command
    assert body == {
        "gpu_spec_uuid": "5090-p",
        "req_gpu_amount": 2,
        "image_uuid": "image-1",
        "cuda_v_from": 124,
        "expand_system_disk_by_gb": 80,
        "instance_name": "fleetdeck-ab12cd34-7",
        "data_center_list": ["westDC3"],
    }


def test_the_region_is_left_to_the_vendor_unless_one_is_asked_for(vendor):
    opened(vendor).create(order())
    assert "data_center_list" not in sent(vendor, f"{PRO}/create")[0]


def test_the_members_of_an_order_are_those_of_the_vendors_example():
    example = json.loads(needed("autodl/pro_create.request.json").read_text(encoding="utf-8"))
    required, optional = BODIES[f"{PRO}/create"]
    assert set(example) == required | optional


def test_the_specs_and_regions_are_those_of_the_documentation():
    listed = json.loads(needed("autodl/regions_and_specs.json").read_text(encoding="utf-8"))
    assert set(SPECS) == set(listed["pro_gpu_spec_uuid"].values())


@pytest.mark.parametrize(("option", "value"), [("disk_gb", "501"), ("disk_gb", "some"), ("cuda_from", "11.8")])
def test_an_order_that_makes_no_sense_is_refused_before_it_is_sent(vendor, option, value):
    with pytest.raises(Refused) as refused:
        opened(vendor).create(order(options={**FakeAutoDl.order_options, option: value}))
    assert option in refused.value.message
    assert sent(vendor, f"{PRO}/create") == []


def test_an_image_that_is_not_there_is_a_definite_no(vendor):
    vendor.answer = lambda request: failure("RecordNotFoundError", "镜像不存在")
    with pytest.raises(Refused):
        opened(vendor).create(order())


# The start-up script


def test_the_script_runs_at_the_first_start_and_not_at_the_second(tmp_path):
    command = start_command(f"echo 'a \"b\" $HOME' >> {tmp_path}/out\n", "fleetdeck-x-1").replace(
        "/root", str(tmp_path)
    )
    for _start in range(2):
        subprocess.run(command, shell=True, check=True)
    assert (tmp_path / "out").read_text() == 'a "b" $HOME\n'


def test_a_script_that_fails_is_tried_again_at_the_next_start(tmp_path):
    script = f"echo x >> {tmp_path}/out; [ $(wc -l < {tmp_path}/out) -gt 1 ]\n"
    command = start_command(script, "fleetdeck-x-1").replace("/root", str(tmp_path))
    for _start in range(3):
        subprocess.run(command, shell=True, check=False)
    assert (tmp_path / "out").read_text() == "x\nx\n"


def test_a_machine_made_from_anothers_image_runs_its_own_script():
    assert start_command("", "fleetdeck-x-1") != start_command("", "fleetdeck-x-2")


# States and facts


def test_every_documented_state_has_our_word():
    documented = {"creating", "created", "starting", "oss_merged", "running", "shutting_down", "shutdown", "released"}
    assert documented <= set(STATUS)
    assert MachineStatus.UNKNOWN not in STATUS.values()


@pytest.mark.parametrize(("raw", "status"), sorted(STATUS.items()))
def test_a_state_is_read_as_its_word(vendor, raw, status):
    vendor.add("box", raw=raw)
    [machine] = opened(vendor).machines()
    assert (machine.status, machine.raw_status) == (status, raw)


def test_a_running_machine_has_its_price_in_yuan_and_its_address(vendor):
    vendor.add("box", gpu="5090-p", facts={"payg_price": 2985})
    [machine] = opened(vendor).machines()
    assert machine.price_per_hour == Money.of("2.985", "CNY")
    assert (machine.address, machine.ssh_port) == ("connect.bjb2.seetacloud.com", 34222)
    assert (machine.gpu_model, machine.raw_gpu) == ("RTX 5090 32GB", "5090-p")
    assert machine.gpu_memory_bytes == 32 * 1024**3
    assert machine.memory_bytes == 96636764160
    assert machine.created_at == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert machine.renews_at is None


def test_the_price_of_several_cards_is_unknown_because_nobody_says_whether_it_is_that_of_one(vendor):
    vendor.add("box", gpu_count=2)
    [machine] = opened(vendor).machines()
    assert machine.price_per_hour is None
    assert machine.details["payg_price"] == "2.98 CNY"


def test_a_machine_that_was_started_without_its_cards_does_not_cost_their_price(vendor):
    vendor.add("box", facts={"start_mode": "non_gpu"})
    assert opened(vendor).machines()[0].price_per_hour is None


@pytest.mark.parametrize("value", [None, 0, "", "free", True])
def test_a_price_that_is_none_is_none_and_never_nought(vendor, value):
    vendor.add("box", facts={"payg_price": value})
    assert opened(vendor).machines()[0].price_per_hour is None


def test_a_machine_that_is_off_is_asked_for_nothing_more_and_saves(vendor):
    vendor.add("box", status="stopped")
    [machine] = opened(vendor).machines()
    assert machine.is_stop_saving is True
    assert machine.price_per_hour is None
    assert [request.url.path for request in vendor.requests] == [f"{PRO}/list"]


def test_a_machine_of_a_prepaid_term_has_its_end_and_no_word_of_saving(vendor):
    until = {"Time": "2027-01-31T00:00:00+08:00", "Valid": True}
    vendor.add("box", status="stopped", facts={"charge_type": "monthly", "expired_at": until})
    [machine] = opened(vendor).machines()
    assert machine.billing == Billing.MONTHLY
    assert machine.renews_at == datetime(2027, 1, 30, 16, tzinfo=UTC)
    assert machine.is_stop_saving is None
    assert opened(vendor).stop_effect(Billing.MONTHLY).saves_compute is False


def test_a_machine_that_vanishes_between_list_and_look_is_told_without_its_price(vendor):
    vendor.add("box")
    answer = vendor.answer
    vendor.answer = lambda request: (
        failure("RecordNotFoundError", "未查询到相关实例") if request.method == "GET" else answer(request)
    )
    [machine] = opened(vendor).machines()
    assert machine.status == MachineStatus.RUNNING
    assert machine.price_per_hour is None


def test_passwords_and_tokens_of_a_machine_are_not_kept(vendor):
    vendor.add("box")
    provider = opened(vendor)
    for machine in (*provider.machines(), provider.machine(next(iter(vendor.machines)))):
        assert PASSWORD not in repr(machine)
        assert "jupyter" not in repr(machine)


def test_an_unlisted_spec_keeps_its_id_and_takes_the_model_of_the_name_beside_it(vendor):
    vendor.add("box", gpu="brand-new")
    [machine] = opened(vendor).machines()
    assert (machine.gpu_model, machine.raw_gpu) == ("", "brand-new")
    [named] = opened(vendor, gpu_specs="other, brand-new = L40S 48GB,").machines()
    assert named.gpu_model == "L40S 48GB"


# Offers


def test_offers_are_the_specs_with_a_price_only_where_the_account_pays_one(vendor):
    vendor.add("box", gpu="v-48g", facts={"payg_price": 2980})
    vendor.add("two", gpu="h800", gpu_count=2)
    offers = {offer.key: offer for offer in opened(vendor).offers()}
    assert len(offers) == 4 * len(SPECS)
    assert offers["v-48g/1"].price_per_hour == Money.of("2.98", "CNY")
    assert [key for key, offer in offers.items() if offer.price_per_hour is not None] == ["v-48g/1"]
    assert {offer.stock for offer in offers.values()} == {Stock.UNKNOWN}
    assert all(offer.gpu_model for offer in offers.values())


def test_a_spec_of_the_accounts_option_is_on_offer(vendor):
    offers = opened(vendor, gpu_specs="v-24g=RTX 4090 24GB").offers()
    assert [offer.gpu_model for offer in offers if offer.raw_gpu == "v-24g"] == ["RTX 4090 24GB"] * 4


def test_images_to_choose_from_are_the_accounts_finished_ones_and_the_public_ones(vendor):
    vendor.images = {
        "image-a": {"image_uuid": "image-a", "name": "vllm", "status": "finished"},
        "image-b": {"image_uuid": "image-b", "name": "half", "status": "saving"},
    }
    choices = opened(vendor).order_choices("image")
    assert choices["image-a"] == "vllm"
    assert "image-b" not in choices
    assert "base-image-l2t43iu6uk" in choices
    assert opened(vendor).order_choices("disk_gb") == {}
