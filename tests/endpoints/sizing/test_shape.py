"""A model's shape from its config.json: several forms of it, and what is missing by name."""

import contextlib

import hypothesis.strategies as st
import pytest
from hypothesis import given

from endpoints.sizing.precision import PRECISIONS, precision_of
from endpoints.sizing.shape import ModelShape, shape_from_config
from panel.core.errors import InvalidInput
from tests.endpoints.sizing import models


@pytest.mark.parametrize(
    "key", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size"]
)
@pytest.mark.parametrize("value", [None, "many", -1, 0, True, 10**9])
def test_a_missing_or_odd_dimension_is_named(key, value):
    with pytest.raises(InvalidInput) as error:
        shape_from_config({**models.LLAMA31_8B, key: value})
    assert error.value.field == key


def test_of_a_model_with_several_parts_its_language_part_counts_and_that_is_said():
    shape = shape_from_config({"text_config": models.LLAMA31_8B, "vision_config": {}, "tie_word_embeddings": False})
    assert shape.parameters == shape_from_config(models.LLAMA31_8B).parameters
    assert shape.is_partial
    assert not shape_from_config(
        {"text_config": models.LLAMA31_8B, "vision_config": {}}, parameters=9 * 10**9
    ).is_partial


def test_stated_parameters_win_over_counted_ones():
    assert shape_from_config(models.LLAMA31_8B, parameters=8_030_261_248).parameters == 8_030_261_248


def test_a_head_size_that_is_stated_wins_over_the_quotient():
    assert shape_from_config(models.QWEN3_235B).head_size == 128


def test_a_window_that_is_switched_off_does_not_count():
    assert shape_from_config(models.QWEN25_72B).window_layers == 0
    assert shape_from_config({**models.LLAMA31_8B, "sliding_window": 4096}).window_layers == 32
    assert (
        shape_from_config({**models.LLAMA31_8B, "sliding_window": 512, "sliding_window_pattern": 4}).window_layers == 24
    )


def test_a_shape_typed_in_by_hand_is_checked():
    with pytest.raises(InvalidInput) as error:
        ModelShape(parameters=1, layers=1, attention_heads=8, kv_heads=3, head_size=64)
    assert error.value.field == "kv_heads"
    with pytest.raises(InvalidInput):
        ModelShape(parameters=0, layers=1, attention_heads=8, kv_heads=8, head_size=64)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"torch_dtype": "float16"}, "float16"),
        ({"dtype": "torch.bfloat16"}, "bfloat16"),
        ({"text_config": {"torch_dtype": "float32"}}, "float32"),
        ({}, "bfloat16"),
        ({"quantization_config": {"quant_method": "fp8"}, "torch_dtype": "bfloat16"}, "fp8"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "awq"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 8}}, "gptq_int8"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "gptq_int4"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "nvfp4"),
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, "bnb_4bit"),
        ({"quantization_config": {"quant_method": "fbgemm_fp8"}}, "fp8"),
        (
            {
                "quantization_config": {
                    "quant_method": "compressed-tensors",
                    "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}},
                }
            },
            "int8",
        ),
    ],
)
def test_the_checkpoint_s_own_precision_is_read(config, name):
    assert precision_of(config) == name


_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=3)
)
_keys = st.sampled_from(
    [*models.DEEPSEEK_V3, "head_dim", "layer_types", "sliding_window", "text_config", "num_local_experts"]
)


@given(st.dictionaries(_keys, _values))
def test_no_stranger_s_config_breaks_the_reader(changes):
    config = {**models.DEEPSEEK_V3, **changes}
    with contextlib.suppress(InvalidInput):
        assert shape_from_config(config).parameters >= 1
    assert precision_of(config) in PRECISIONS
