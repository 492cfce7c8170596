"""Sizing against what others measured and published; each figure with its source."""

import pytest

from endpoints.sizing.fit import Demand, best_fit, fit
from endpoints.sizing.memory import GIB, kv_request_bytes, kv_token_bytes, need, weights_bytes
from endpoints.sizing.shape import ModelShape, shape_from_config
from tests.endpoints.sizing import models

# QwenLM/Qwen2.5, docs/source/benchmark/speed_benchmark.rst, "Transformer" tables: GPU memory (GB of 1024³) on NVIDIA A100 80GB
# after one input token and 2,048 generated ones, batch 1; BF16 of 72B over two cards.
A100 = [
    (models.QWEN25_05B, "bfloat16", 0.97),
    (models.QWEN25_15B, "bfloat16", 2.95),
    (models.QWEN25_14B, "bfloat16", 28.08),
    (models.QWEN25_14B, "gptq_int8", 16.11),
    (models.QWEN25_14B, "gptq_int4", 9.94),
    (models.QWEN25_14B, "awq", 9.79),
    (models.QWEN25_32B, "bfloat16", 61.58),
    (models.QWEN25_32B, "gptq_int8", 33.56),
    (models.QWEN25_32B, "gptq_int4", 18.94),
    (models.QWEN25_32B, "awq", 18.67),
    (models.QWEN25_72B, "bfloat16", 136.20),
    (models.QWEN25_72B, "gptq_int8", 72.61),
    (models.QWEN25_72B, "gptq_int4", 39.91),
    (models.QWEN25_72B, "awq", 39.44),
]


@pytest.mark.parametrize(("config", "precision", "measured"), A100)
def test_weights_and_cache_are_what_was_measured_on_an_a100(config, precision, measured):
    shape = shape_from_config(config)
    wanted = weights_bytes(shape, precision) + kv_request_bytes(shape, context=2049)
    assert wanted / GIB == pytest.approx(measured, rel=0.05)


# Start-up logs of vLLM: weights on each GPU in GiB.
LOGS = [
    # vllm-project/vllm issue 13061: DeepSeek-R1-Distill-Qwen-14B on 2 × RTX 4090
    (models.QWEN25_14B, "bfloat16", 2, 13.9476),
    # vllm-project/vllm pull request 12569: Llama-3.1-70B-Instruct-quantized.w8a8, one 80 GB card
    (models.LLAMA31_70B, "int8", 1, 67.7229),
    # vllm-project/vllm issue 16570: Qwen2.5-VL-72B on 4 × A100 40GB (its vision part of 0.7 B is not counted here)
    (models.QWEN25_72B, "bfloat16", 4, 34.43),
]


@pytest.mark.parametrize(("config", "precision", "degree", "measured"), LOGS)
def test_weights_on_each_gpu_are_what_vllm_logged(config, precision, degree, measured):
    wanted = need(shape_from_config(config), precision_name=precision, context=16, concurrency=1, degree=degree)
    assert wanted.weights_bytes / GIB == pytest.approx(measured, rel=0.03)


def test_a_72b_in_16_bits_does_not_fit_on_four_40_gb_cards_and_does_on_four_80_gb_cards():
    """vLLM issue 16570 found 0.04 GiB left for the cache on 4 × A100 40GB (39.38 GiB each) at 0.95."""
    demand = Demand(shape=shape_from_config(models.QWEN25_72B), context=32_768, concurrency=1, utilization=0.95)
    assert fit(demand, memory_bytes=int(39.38 * GIB), degree=4).verdict == "does_not"
    assert fit(demand, memory_bytes=int(79.1 * GIB), degree=4).verdict == "fits"


def test_a_70b_in_8_bits_leaves_on_an_80_gb_card_what_vllm_logged():
    """Pull request 12569: 1,381 blocks of 16 tokens at 0.98, 10.79 requests of 2,048 tokens."""
    demand = Demand(
        shape=shape_from_config(models.LLAMA31_70B), context=2048, concurrency=10, precision="int8", utilization=0.98
    )
    found = fit(demand, memory_bytes=int(79.1 * GIB), degree=1)
    assert 9 <= found.concurrency <= 13
    assert found.verdict == "tight"


def test_two_4090_hold_about_as_many_tokens_of_a_14b_as_vllm_found():
    """vLLM issue 13061: 81,536 tokens at 0.98, so 131,072 were refused."""
    demand = Demand(shape=shape_from_config(models.QWEN25_14B), context=8192, concurrency=1, utilization=0.98)
    found = fit(demand, memory_bytes=int(23.55 * GIB), degree=2)
    assert found.max_context == pytest.approx(81_536, rel=0.1)


def test_a_235b_of_experts_takes_what_vllm_logged_for_each_token():
    """vLLM issue 21348: Qwen3-235B-A22B-FP8 on 4 × H100, 8.11 GiB of KV cache hold 178,880 tokens."""
    shape = shape_from_config(models.QWEN3_235B)
    assert 8.11 * GIB / kv_token_bytes(shape, degree=4) == pytest.approx(178_880, rel=0.02)


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        (models.LLAMA31_8B, 8.03),
        (models.LLAMA31_70B, 70.6),
        (models.LLAMA31_405B, 405.9),
        (models.MIXTRAL_8X7B, 46.7),
        (models.QWEN3_235B, 235.1),
        (models.DEEPSEEK_V3, 671.0),
        (models.QWEN25_05B, 0.494),
        (models.QWEN25_72B, 72.7),
    ],
)
def test_parameters_are_those_of_the_model_cards(config, billions):
    """Hugging Face model cards (safetensors totals; DeepSeek-V3: 671 B without the module for predicting ahead)."""
    assert shape_from_config(config).parameters / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(
    ("config", "kilobytes"),
    [(models.DEEPSEEK_V3, 70.272), (models.QWEN25_72B, 327.680), (models.LLAMA31_405B, 516.096)],
)
def test_the_cache_of_a_token_is_that_of_the_deepseek_paper(config, kilobytes):
    """DeepSeek-AI, "Insights into DeepSeek-V3" (2025), table 1: KV cache per token in BF16, KB of 1,000 bytes."""
    assert kv_token_bytes(shape_from_config(config)) / 1000 == pytest.approx(kilobytes, rel=1e-6)


@pytest.mark.parametrize(
    ("config", "tokens", "gibibytes"),
    [
        (models.LLAMA31_8B, 1024, 0.125),
        (models.LLAMA31_8B, 16_000, 1.95),
        (models.LLAMA31_8B, 128_000, 15.62),
        (models.LLAMA31_70B, 1024, 0.313),
        (models.LLAMA31_70B, 16_000, 4.88),
        (models.LLAMA31_70B, 128_000, 39.06),
    ],
)
def test_the_cache_of_a_request_is_that_of_the_llama_3_1_announcement(config, tokens, gibibytes):
    """huggingface.co/blog/llama31, "Inference Memory Requirements", KV cache in FP16."""
    assert kv_request_bytes(shape_from_config(config), context=tokens) / GIB == pytest.approx(gibibytes, abs=0.006)


def test_rules_of_thumb_hold_seven_gigabytes_for_a_7b_in_int8_and_two_cards_for_a_70b():
    """The rules that buyers go by: parameters × 1 byte in INT8; 70B in 16 bits from two 80 GB cards on, tightly."""
    seven = ModelShape(parameters=7_000_000_000, layers=32, attention_heads=32, kv_heads=32, head_size=128)
    assert weights_bytes(seven, "int8") == 7_000_000_000
    demand = Demand(shape=shape_from_config(models.LLAMA31_70B), context=8192, concurrency=8)
    assert best_fit(demand, memory_bytes=80 * GIB, gpu_count=1).verdict == "does_not"
    assert best_fit(demand, memory_bytes=80 * GIB, gpu_count=8).degree == 4
    assert best_fit(demand, memory_bytes=80 * GIB, gpu_count=2).verdict == "tight"
    eight_bit = Demand(shape=demand.shape, context=8192, concurrency=8, precision="int8")
    assert best_fit(eight_bit, memory_bytes=80 * GIB, gpu_count=2).verdict == "fits"
