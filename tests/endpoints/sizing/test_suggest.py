"""Suggestions are valid for the engine they are for; cards that cannot compute in a precision are named."""

import pytest

from endpoints.engines.base import EngineSpec, Place
from endpoints.engines.registry import launch
from endpoints.sizing.fit import Demand, best_fit
from endpoints.sizing.memory import GIB
from endpoints.sizing.shape import shape_from_config
from endpoints.sizing.suggest import card_note, suggested_arguments
from fleet.providers.gpu_models import gpu_model
from tests.endpoints.sizing import models

SEVEN = shape_from_config(models.LLAMA31_8B)


def demand(**changes):
    return Demand(**{"shape": SEVEN, "context": 4096, "concurrency": 8, **changes})


@pytest.mark.parametrize("kind", ["vllm", "sglang", "tgi", "trtllm", "llamacpp"])
@pytest.mark.parametrize("precision", ["bfloat16", "fp8", "bnb_4bit", "awq"])
@pytest.mark.parametrize("kv", ["auto", "fp8", "fp8_e4m3"])
def test_suggested_arguments_make_a_valid_launch_that_says_the_requests(kind, precision, kv):
    wanted = demand(precision=precision, kv_precision=kv)
    found = best_fit(wanted, memory_bytes=24 * GIB, gpu_count=2)
    arguments = suggested_arguments(kind, wanted, found)
    degree = 1 if kind == "llamacpp" else found.degree
    spec = EngineSpec(kind=kind, version="1.0.0", model="a/b", arguments=arguments, tensor_parallel_size=degree)
    assert launch(spec, Place(port=8000, gpu_count=degree)).slots == 8


def test_a_tight_fit_suggests_the_requests_that_it_holds():
    wanted = demand(concurrency=200)
    found = best_fit(wanted, memory_bytes=24 * GIB, gpu_count=1)
    assert found.verdict == "tight"
    assert 1 <= suggested_arguments("vllm", wanted, found)["max_num_seqs"] == found.concurrency < 200


def test_what_does_not_fit_has_no_suggestion():
    wanted = demand(shape=shape_from_config(models.LLAMA31_405B))
    assert suggested_arguments("vllm", wanted, best_fit(wanted, memory_bytes=24 * GIB, gpu_count=1)) == {}
    assert suggested_arguments("vllm", wanted, best_fit(wanted, memory_bytes=None, gpu_count=1)) == {}


@pytest.mark.parametrize(
    ("precision", "card", "words"),
    [
        ("bfloat16", "T4", "choose float16"),
        ("bfloat16", "Tesla V100-SXM2-32GB", "choose float16"),
        ("fp8", "T4", "gain memory only"),
        ("fp8", "P40", "gain memory only"),
        ("int8", "P40", "gain memory only"),
        ("fp8", "A100 80GB", "gain memory only"),
        ("nvfp4", "H100 SXM 80GB", "gain memory only"),
    ],
)
def test_an_older_card_is_named_with_what_it_cannot_compute(precision, card, words):
    name = gpu_model(card).name
    assert words in card_note(precision, name)
    assert name in card_note(precision, name)


@pytest.mark.parametrize(
    ("precision", "card"),
    [
        ("bfloat16", "A100 80GB"),
        ("fp8", "RTX 4090"),
        ("fp8", "L40S"),
        ("fp8", "H20"),
        ("nvfp4", "B200"),
        ("nvfp4", "RTX 5090"),
        ("int8", "T4"),
        ("float16", "P40"),
        ("fp8", "RTX 6000 Ada"),
        ("fp8", "RTX PRO 6000"),
    ],
)
def test_a_card_that_can_gets_no_note(precision, card):
    assert card_note(precision, gpu_model(card).name) == ""


def test_a_card_that_nobody_knows_gets_no_note():
    assert card_note("nvfp4", "Something 9000") == ""
