"""Fits, tight, does not: monotone in what is asked, honest about what is unknown, priced exactly."""

from dataclasses import dataclass
from decimal import Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given

from endpoints.sizing.fit import Demand, best_fit, cheapest_first, degrees, fit, offer_fit
from endpoints.sizing.memory import GIB, kv_request_bytes, kv_token_bytes, need
from endpoints.sizing.shape import ModelShape, shape_from_config
from panel.core.errors import InvalidInput
from panel.core.money import Money
from tests.endpoints.sizing import models

RANK = {"fits": 0, "tight": 1, "does_not": 2}
SEVEN = shape_from_config(models.LLAMA31_8B)


@dataclass
class Offer:
    gpu_count: int = 1
    gpu_memory_bytes: int | None = 24 * GIB
    price_per_hour: Money | None = None


def demand(**changes):
    return Demand(**{"shape": SEVEN, "context": 4096, "concurrency": 8, **changes})


shapes = st.builds(
    lambda billions, layers, kv, share, head: ModelShape(
        parameters=billions * 10**9,
        layers=layers,
        attention_heads=kv * share,
        kv_heads=kv,
        head_size=head,
        vocabulary=32000,
    ),
    st.integers(1, 700),
    st.integers(1, 130),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([1, 4, 8]),
    st.sampled_from([64, 128]),
)


@given(
    shape=shapes,
    context=st.integers(1, 200_000),
    more=st.integers(0, 200_000),
    slots=st.integers(1, 500),
    extra=st.integers(0, 500),
)
def test_more_context_or_more_requests_never_need_less(shape, context, more, slots, extra):
    one = need(shape, context=context, concurrency=slots)
    assert need(shape, context=context + more, concurrency=slots).total_bytes >= one.total_bytes
    assert need(shape, context=context, concurrency=slots + extra).total_bytes >= one.total_bytes


@given(shape=shapes, memory=st.integers(1, 300), extra=st.integers(0, 300), slots=st.integers(1, 300))
def test_more_memory_is_never_worse(shape, memory, extra, slots):
    wanted = Demand(shape=shape, context=4096, concurrency=slots)
    small = fit(wanted, memory_bytes=memory * GIB, degree=1)
    large = fit(wanted, memory_bytes=(memory + extra) * GIB, degree=1)
    assert RANK[large.verdict] <= RANK[small.verdict]
    assert large.max_context >= small.max_context
    assert large.concurrency >= small.concurrency


@given(shape=shapes, gpus=st.integers(1, 16))
def test_every_degree_divides_the_heads_and_one_is_always_there(shape, gpus):
    found = degrees(shape, gpus)
    assert found[0] == 1
    assert all(shape.attention_heads % degree == 0 and degree <= gpus for degree in found)


@given(shape=shapes, memory=st.integers(8, 300), slots=st.integers(1, 300))
def test_what_is_called_fitting_holds_all_requests_and_tight_holds_at_least_one(shape, memory, slots):
    found = fit(Demand(shape=shape, context=2048, concurrency=slots), memory_bytes=memory * GIB, degree=1)
    if found.verdict == "fits":
        assert found.concurrency >= slots
        assert found.free_bytes >= 0
    if found.verdict == "tight":
        assert found.concurrency >= 1
    if found.verdict == "does_not":
        assert found.max_context < 2048


def test_the_longest_context_fits_and_one_page_more_does_not():
    found = fit(demand(), memory_bytes=24 * GIB, degree=1)
    left = int(24 * GIB * 0.9) - found.need.weights_bytes - found.need.overhead_bytes
    assert kv_request_bytes(SEVEN, context=found.max_context) <= left
    assert kv_request_bytes(SEVEN, context=found.max_context + 16) > left


def test_the_smallest_degree_that_fits_is_chosen():
    assert best_fit(demand(), memory_bytes=80 * GIB, gpu_count=8).degree == 1
    large = Demand(shape=shape_from_config(models.LLAMA31_70B), context=8192, concurrency=16)
    assert best_fit(large, memory_bytes=80 * GIB, gpu_count=8).degree == 4


def test_a_tight_way_on_fewer_cards_loses_to_one_that_fits_on_more():
    large = Demand(shape=shape_from_config(models.LLAMA31_70B), context=8192, concurrency=8)
    assert fit(large, memory_bytes=80 * GIB, degree=2).verdict == "tight"
    assert best_fit(large, memory_bytes=80 * GIB, gpu_count=4).degree == 4


def test_kv_heads_that_do_not_divide_are_kept_whole_on_each_gpu():
    shape = shape_from_config(models.QWEN3_235B)
    assert kv_token_bytes(shape, degree=8) == kv_token_bytes(shape, degree=4)
    assert kv_token_bytes(shape, degree=2) == 2 * kv_token_bytes(shape, degree=4)


def test_latent_attention_lies_whole_on_every_gpu():
    shape = shape_from_config(models.DEEPSEEK_V3)
    assert kv_token_bytes(shape, degree=8) == kv_token_bytes(shape) == 70_272


def test_sliding_windows_keep_no_more_than_their_window():
    config = models.llama(3072, 12, 16, 8, 8192, 262144, sliding_window=1024)
    kinds = (["sliding_attention"] * 5 + ["full_attention"]) * 2
    hybrid = shape_from_config({**config, "layer_types": kinds})
    whole = shape_from_config({**config, "sliding_window": None})
    assert (hybrid.window, hybrid.window_layers) == (1024, 10)
    long_, per_layer = 32_768, kv_token_bytes(whole) // 12
    assert kv_request_bytes(hybrid, context=long_) == per_layer * (2 * long_ + 10 * 1024)
    assert kv_request_bytes(hybrid, context=512) == kv_request_bytes(whole, context=512)
    linear = shape_from_config({**config, "layer_types": ["linear_attention", "full_attention"] * 6})
    assert linear.layers == 6


def test_an_offer_is_priced_by_machine_and_by_replica():
    found = offer_fit(demand(concurrency=16), Offer(gpu_count=8, price_per_hour=Money(Decimal("16.00"), "CNY")))
    assert (found.fit.verdict, found.fit.degree, found.replicas) == ("fits", 2, 4)
    assert found.price_per_hour == Money(Decimal("16.00"), "CNY")
    assert found.price_per_replica_hour == Money(Decimal(4), "CNY")


def test_an_unknown_price_stays_unknown_and_unknown_memory_too():
    found = offer_fit(demand(), Offer(gpu_count=8))
    assert (found.price_per_hour, found.price_per_replica_hour) == (None, None)
    blind = offer_fit(demand(), Offer(gpu_memory_bytes=None, price_per_hour=Money(Decimal(1), "USD")))
    assert (blind.fit.verdict, blind.replicas, blind.price_per_replica_hour) == ("unknown", 0, None)


def test_what_does_not_fit_has_no_price_of_a_replica():
    found = offer_fit(
        demand(shape=shape_from_config(models.LLAMA31_405B)), Offer(price_per_hour=Money(Decimal(2), "USD"))
    )
    assert (found.fit.verdict, found.replicas, found.price_per_replica_hour) == ("does_not", 0, None)


def test_offers_are_sorted_by_verdict_then_price_and_currencies_stay_apart():
    def priced(memory, amount, currency="CNY"):
        price = None if amount is None else Money(Decimal(amount), currency)
        return offer_fit(demand(), Offer(gpu_memory_bytes=memory * GIB, price_per_hour=price))

    small, dear, cheap, silent, dollars = (
        priced(8, 1),
        priced(80, 9),
        priced(80, 5),
        priced(80, None),
        priced(80, 1, "USD"),
    )
    assert cheapest_first([small, silent, dollars, dear, cheap]) == [cheap, dear, dollars, silent, small]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"context": 0}, "context"),
        ({"context": 200_000}, "context"),
        ({"concurrency": 0}, "concurrency"),
        ({"utilization": 1.2}, "utilization"),
    ],
)
def test_what_cannot_be_asked_is_named(changes, field):
    with pytest.raises(InvalidInput) as error:
        demand(**changes)
    assert error.value.field == field


def test_an_unknown_precision_names_those_there_are():
    with pytest.raises(InvalidInput, match="bfloat16"):
        fit(demand(precision="int3"), memory_bytes=GIB, degree=1)
    with pytest.raises(InvalidInput, match="fp8"):
        fit(demand(kv_precision="int2"), memory_bytes=GIB, degree=1)
