"""A failed start is named by its cause, with a next step that fits the cause: opposite advice for opposite causes."""

import pytest

from endpoints.engines.base import EngineSpec
from endpoints.engines.failure_sentences import NEXT_STEPS, SENTENCES
from endpoints.engines.failures import _PATTERNS, failure_in
from tests.endpoints.engines.samples import sample

VLLM = EngineSpec(kind="vllm", model="a/b")


def test_every_line_of_the_real_logs_has_its_class():
    lines = sample("vllm_startup_errors.txt").splitlines()
    kinds = [found.kind if (found := failure_in([line], VLLM)) else None for line in lines]
    assert kinds == [
        "no_cache_memory",
        "context",
        "context",
        "context_hopeless",
        "cuda_memory",
        "hub_unreachable",
        "driver_mismatch",
        None,  # the line after the mismatch names a version only
    ]


@pytest.mark.parametrize(("line", "fits"), [(1, 3664), (2, 127776)])
def test_a_context_that_does_not_fit_suggests_one_that_does(line, fits):
    found = failure_in([sample("vllm_startup_errors.txt").splitlines()[line]], VLLM)
    assert found.suggestions == {"max_model_len": fits}
    assert str(fits) in found.next_step


def test_a_context_too_small_to_be_useful_asks_for_more_gpus():
    found = failure_in([sample("vllm_startup_errors.txt").splitlines()[3]], VLLM)
    assert found.suggestions == {}
    assert "More GPUs" in found.next_step or "more GPUs" in found.next_step


def test_out_of_memory_halves_the_requests_and_no_cache_memory_raises_the_share():
    lines = sample("vllm_startup_errors.txt").splitlines()
    spec = EngineSpec(kind="vllm", model="a/b", arguments={"max_num_seqs": 256, "gpu_memory_utilization": 0.85})
    assert failure_in([lines[4]], spec).suggestions == {"max_num_seqs": 128}
    assert failure_in([lines[0]], spec).suggestions == {"gpu_memory_utilization": 0.9}
    assert failure_in([lines[4]], VLLM).suggestions == {"max_num_seqs": 64}
    one = EngineSpec(kind="vllm", model="a/b", arguments={"max_num_seqs": 1})
    assert failure_in([lines[4]], one).kind == "cuda_memory_alone"


def test_suggestions_bear_the_engine_s_own_names():
    oom = ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"]
    assert failure_in(oom, EngineSpec(kind="sglang", model="a/b")).suggestions == {"max_running_requests": 64}
    assert failure_in(oom, EngineSpec(kind="llamacpp", model="a/b")).suggestions == {"parallel": 2}
    assert failure_in(oom, EngineSpec(kind="comfyui", model="/m", source="path")).suggestions == {}


def test_an_unreachable_hub_names_what_was_tried_and_is_no_engine_error():
    found = failure_in(["INFO starting", sample("vllm_startup_errors.txt").splitlines()[5], "engine core failed"], VLLM)
    assert (found.kind, found.endpoint) == ("hub_unreachable", "huggingface.co")
    assert "HF_ENDPOINT" in found.next_step
    assert "huggingface.co was tried" in found.sentence


def test_the_cause_wins_over_its_consequences():
    found = failure_in(
        ["torch.cuda.OutOfMemoryError: CUDA out of memory", "vllm: error: unrecognized arguments: --max-num"], VLLM
    )
    assert (found.kind, found.sentence) == (
        "unknown_argument",
        "This engine version does not know the argument --max-num.",
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("error: invalid argument: --flash", "unknown_argument"),
        ("Error: No such option: --max_seq", "unknown_argument"),
        ("error: unexpected argument '--foo' found", "unknown_argument"),
        ("OSError: [Errno 98] Address already in use", "port_in_use"),
        ("main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", "port_in_use"),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 11040)", "driver_too_old"),
        ("RuntimeError: No CUDA GPUs are available", "no_gpu"),
        ("OSError: [Errno 28] No space left on device", "disk_full"),
        ("ModuleNotFoundError: No module named 'vllm'", "program_missing"),
        ("Please pass the argument `trust_remote_code=True` to allow custom code to be run.", "remote_code"),
        ("huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo", "model_refused"),
        ("OSError: a/b is not a local folder and is not a valid model identifier", "model_missing"),
        ("ValueError: Model architectures ['FooForCausalLM'] are not supported for now.", "model_unknown"),
        ("llama_model_load: error loading model: unknown model architecture: 'foo'", "model_unknown"),
        (
            "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).",
            "heads_not_divisible",
        ),
        (
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
            "precision_unsupported",
        ),
        (
            "ValueError: Free memory on device (3.1/23.6 GiB) is less than desired GPU memory utilization (0.9, 21.2 GiB).",
            "memory_taken",
        ),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "no_cache_memory"),
        (
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9 MiB: cudaMalloc failed: out of memory",
            "cuda_memory",
        ),
        (
            "RuntimeError: DataLoader worker is killed by signal: Bus error. insufficient shared memory (shm)",
            "shared_memory",
        ),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:268", "cards_cannot_talk"),
    ],
)
def test_known_lines_of_engines_have_their_class(line, kind):
    assert failure_in([line]).kind == kind


@pytest.mark.parametrize(
    "line",
    [
        "",
        "INFO 01-30 model_runner.py: Starting to load model a/b...",
        "INFO: Uvicorn running",
        "Initializing a V1 LLM engine with config: model='a/b', trust_remote_code=True, dtype=torch.bfloat16",
    ],
)
def test_a_line_that_says_nothing_is_no_failure(line):
    assert failure_in([line]) is None


def test_every_class_has_a_sentence_and_a_next_step():
    kinds = {kind for kind, _pattern in _PATTERNS} | {"context_hopeless", "cuda_memory_alone"}
    assert kinds == set(SENTENCES) == set(NEXT_STEPS)
