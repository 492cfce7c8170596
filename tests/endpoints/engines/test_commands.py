"""The command of each engine, word for word, and what comes with it."""

import json
import shlex
import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

from endpoints.engines.base import CustomCommand, EngineSpec, Mount, Place, ServerMirrors
from endpoints.engines.parts import side_port
from endpoints.engines.registry import ENGINES, argument_schema, launch
from panel.core.errors import InvalidInput

HUB = ServerMirrors(cache_folder="/data/models")
CHINA = ServerMirrors(hf_endpoint="https://hf-mirror.com", image_prefix="m.daocloud.io", cache_folder="/data/models")


def placed(**changes):
    return Place(**{"port": 8001, "gpu_count": 1, "host": "0.0.0.0", "mirrors": HUB, **changes})


GOLDEN = {
    "vllm": (
        EngineSpec(
            kind="vllm",
            version="0.18.0",
            model="Qwen/Qwen3-8B",
            revision="main",
            served_name="qwen",
            arguments={"max_num_seqs": 64, "max_model_len": 8192, "quantization": "fp8", "tool_call_parser": "hermes"},
            extra_arguments=["--seed", "7"],
            tensor_parallel_size=2,
        ),
        placed(gpu_count=2),
        (
            "vllm serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8001 --served-model-name qwen --revision main "
            "--tensor-parallel-size 2 --max-num-seqs 64 --max-model-len 8192 --gpu-memory-utilization 0.9 "
            "--quantization fp8 --tool-call-parser hermes --enable-auto-tool-choice --shutdown-timeout 300 --seed 7"
        ),
        "vllm/vllm-openai:v0.18.0",
    ),
    "sglang": (
        EngineSpec(kind="sglang", version="0.5.9", model="Qwen/Qwen3-8B", arguments={"context_length": 32768}),
        placed(),
        (
            """python3 -c 'import runpy, sys; from os import environ; sys.argv += ['"'"'--api-key'"'"', """
            """environ.pop('"'"'ENGINE_API_KEY'"'"')]; """
            """runpy.run_module('"'"'sglang.launch_server'"'"', run_name='"'"'__main__'"'"', alter_sys=True)' """
            "--model-path Qwen/Qwen3-8B --host 0.0.0.0 --port 8001 "
            "--served-model-name Qwen/Qwen3-8B --tp-size 1 --max-running-requests 128 --context-length 32768 "
            "--mem-fraction-static 0.85 --enable-metrics"
        ),
        "lmsysorg/sglang:v0.5.9",
    ),
    "tgi": (
        EngineSpec(kind="tgi", model="Qwen/Qwen3-8B", arguments={"max_total_tokens": 4096, "max_input_tokens": 3000}),
        placed(),
        (
            "/tgi-entrypoint.sh --model-id Qwen/Qwen3-8B --hostname 0.0.0.0 --port 8001 --prometheus-port 18001 "
            "--master-port 28001 --shard-uds-path /tmp/text-generation-server-8001 --num-shard 1 "
            "--max-concurrent-requests 128 --max-total-tokens 4096 --max-input-tokens 3000 --cuda-memory-fraction 0.95 "
            "--graceful-termination-timeout 300"
        ),
        "ghcr.io/huggingface/text-generation-inference:3.3.5",
    ),
    "triton": (
        EngineSpec(kind="triton", version="25.06", source="path", model="/srv/repository", served_name="detector"),
        placed(),
        (
            "tritonserver --model-repository=/srv/repository --http-address=0.0.0.0 --http-port=8001 --metrics-port=18001 "
            "--allow-grpc=false --strict-readiness=true --exit-timeout-secs=300"
        ),
        "nvcr.io/nvidia/tritonserver:25.06-py3",
    ),
    "trtllm": (
        EngineSpec(
            kind="trtllm",
            version="1.1.0",
            model="Qwen/Qwen3-8B",
            arguments={"max_seq_len": 8192, "options_file": "/srv/options.yaml"},
        ),
        placed(),
        (
            "trtllm-serve Qwen/Qwen3-8B --host 0.0.0.0 --port 8001 --tp_size 1 --max_batch_size 128 --max_seq_len 8192 "
            "--kv_cache_free_gpu_memory_fraction 0.9 --extra_llm_api_options /srv/options.yaml"
        ),
        "nvcr.io/nvidia/tensorrt-llm/release:1.1.0",
    ),
    "comfyui": (
        EngineSpec(
            kind="comfyui",
            source="path",
            model="/srv/comfy",
            image="registry.example.org/comfyui:1",
            arguments={"vram_mode": "highvram", "reserve_vram": 2},
        ),
        placed(),
        (
            "python3 main.py --listen 0.0.0.0 --port 8001 --disable-auto-launch --base-directory /srv/comfy --highvram "
            "--reserve-vram 2"
        ),
        "registry.example.org/comfyui:1",
    ),
    "transformers": (
        EngineSpec(kind="transformers", version="5.24.0", model="Qwen/Qwen3-8B", revision="abc1", image="own/tf:5"),
        placed(),
        "transformers serve Qwen/Qwen3-8B@abc1 --host 0.0.0.0 --port 8001 --continuous-batching",
        "own/tf:5",
    ),
    "llamacpp": (
        EngineSpec(
            kind="llamacpp",
            source="path",
            model="/srv/m/tiny.gguf",
            arguments={"parallel": 8, "context_per_slot": 4096, "flash_attn": "on"},
        ),
        placed(),
        (
            "/app/llama-server --model /srv/m/tiny.gguf --alias tiny.gguf --host 0.0.0.0 --port 8001 --ctx-size 32768 "
            "--parallel 8 --n-gpu-layers 999 --flash-attn on --metrics"
        ),
        "ghcr.io/ggml-org/llama.cpp:server-cuda",
    ),
    "custom": (
        EngineSpec(
            kind="custom",
            model="/srv/m",
            source="path",
            image="own/engine:1",
            custom=CustomCommand(command=["serve", "--at", "{host}:{port}", "--options", '{"a": {}}', "{model}"]),
        ),
        placed(),
        """serve --at 0.0.0.0:8001 --options '{"a": {}}' /srv/m""",
        "own/engine:1",
    ),
}


@pytest.mark.parametrize("kind", ENGINES)
def test_every_engine_gets_its_command_word_for_word(kind):
    spec, place, command, image = GOLDEN[kind]
    built = launch(spec, place)
    assert shlex.join(built.command) == command
    assert built.image == image


@pytest.mark.parametrize("kind", ENGINES)
def test_a_spec_survives_its_json(kind):
    spec = GOLDEN[kind][0]
    assert EngineSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize("kind", ENGINES)
def test_every_argument_says_what_it_costs_and_buys(kind):
    for name, facts in argument_schema(kind)["properties"].items():
        assert facts["description"].endswith("."), name
        assert facts["type"] in {"integer", "number", "boolean", "string"}


@pytest.mark.parametrize(
    ("kind", "word"),
    [(kind, "--port=1") for kind in ENGINES if kind not in {"custom", "triton"}]
    + [("triton", "--http-port=1"), ("vllm", "--po"), ("sglang", "--hos"), ("comfyui", "--listen"), ("tgi", "-p")],
)
def test_no_engine_lets_an_extra_argument_move_its_port(kind, word):
    spec, place, *_rest = GOLDEN[kind]
    with pytest.raises(InvalidInput, match="set by the panel"):
        launch(EngineSpec.from_json({**spec.to_json(), "extra_arguments": [word]}), place)


@given(port=st.integers(1024, 65_535))
def test_side_ports_are_valid_and_no_other_than_those_of_neighbours(port):
    found = [side_port(port), side_port(port, 1)]
    assert len({port, *found}) == 3
    assert all(10_000 <= one < 40_000 for one in found)
    assert not set(found) & {port + near for near in range(-500, 500)} or port % 10_000 < 500 or port % 10_000 >= 9_500


def test_slots_are_always_said_even_where_nothing_is_given():
    flags = {
        "vllm": "--max-num-seqs",
        "sglang": "--max-running-requests",
        "trtllm": "--max_batch_size",
        "llamacpp": "--parallel",
    }
    for kind, flag in flags.items():
        spec, place, *_rest = GOLDEN[kind]
        bare = EngineSpec.from_json({**spec.to_json(), "arguments": {}})
        built = launch(bare, place)
        assert built.command[built.command.index(flag) + 1] == str(built.slots)


def test_an_older_vllm_is_drained_from_outside_because_it_cuts_what_runs():
    spec, place, *_rest = GOLDEN["vllm"]
    older = launch(EngineSpec.from_json({**spec.to_json(), "version": "0.17.1"}), place)
    assert "--shutdown-timeout" not in older.command
    assert older.drain.how == "idle_then_sigterm"
    assert launch(spec, place).drain.how == "sigterm"


def test_a_mainland_server_gets_its_mirror_and_its_image_prefix():
    spec = EngineSpec(kind="vllm", version="0.18.0", model="Qwen/Qwen3-8B")
    built = launch(spec, placed(mirrors=CHINA))
    assert built.environment == {"HF_ENDPOINT": "https://hf-mirror.com"}
    assert built.image == "m.daocloud.io/docker.io/vllm/vllm-openai:v0.18.0"
    only_hub = ServerMirrors(image_prefix="m.daocloud.io/docker.io/")
    assert launch(spec, placed(mirrors=only_hub)).image == "m.daocloud.io/docker.io/vllm/vllm-openai:v0.18.0"
    assert launch(GOLDEN["tgi"][0], placed(mirrors=only_hub)).image.startswith("ghcr.io/")
    assert launch(GOLDEN["tgi"][0], placed(mirrors=CHINA)).image.startswith("m.daocloud.io/ghcr.io/huggingface/")


@pytest.mark.parametrize(
    ("kind", "variable", "value"),
    [
        ("vllm", "VLLM_USE_MODELSCOPE", "True"),
        ("sglang", "SGLANG_USE_MODELSCOPE", "true"),
        ("llamacpp", "MODEL_ENDPOINT", "https://www.modelscope.cn/"),
    ],
)
def test_modelscope_is_switched_on_and_the_mirror_stays_for_hidden_calls(kind, variable, value):
    built = launch(EngineSpec(kind=kind, source="modelscope", model="Qwen/Qwen3-8B"), placed(mirrors=CHINA))
    assert built.environment[variable] == value
    assert built.environment["HF_ENDPOINT"] == "https://hf-mirror.com"
    assert Mount(source="/data/models/modelscope", target="/root/.cache/modelscope") in built.mounts


def test_an_engine_that_cannot_use_modelscope_says_what_to_do():
    with pytest.raises(InvalidInput, match=r"cannot load from there; it takes: huggingface, path"):
        launch(EngineSpec(kind="tgi", source="modelscope", model="Qwen/Qwen3-8B"), placed())


def test_a_model_on_a_path_asks_no_hub_and_is_mounted_read_only():
    built = launch(EngineSpec(kind="vllm", version="0.18.0", source="path", model="/data/qwen"), placed())
    assert built.environment == {"HF_HUB_OFFLINE": "1"}
    assert Mount(source="/data/qwen", target="/data/qwen", is_read_only=True) in built.mounts
    assert built.command[built.command.index("--served-model-name") + 1] == "qwen"


def test_a_process_has_no_image_no_mounts_and_its_own_program():
    built = launch(EngineSpec(kind="llamacpp", model="ggml-org/gemma-3-1b-it-GGUF:Q8_0"), placed(runtime="process"))
    assert (built.image, built.mounts, built.shm_bytes) == ("", [], None)
    assert built.command[:3] == ["llama-server", "--hf-repo", "ggml-org/gemma-3-1b-it-GGUF:Q8_0"]


def test_secrets_are_passed_by_name_and_never_as_values():
    built = launch(EngineSpec(kind="vllm", model="a/b", secret_environment={"HF_TOKEN": "hub"}), placed())
    assert built.secret_environment == {"HF_TOKEN": "hub"}
    assert "HF_TOKEN" not in built.environment
    with pytest.raises(InvalidInput, match="looks like a secret"):
        launch(EngineSpec(kind="vllm", model="a/b", environment={"HF_TOKEN": "hf_x"}), placed())
    with pytest.raises(InvalidInput, match="gives a replica its GPUs"):
        launch(EngineSpec(kind="vllm", model="a/b", environment={"CUDA_VISIBLE_DEVICES": "0"}), placed())


def test_ready_is_a_streamed_token_of_the_served_name():
    check = launch(GOLDEN["vllm"][0], GOLDEN["vllm"][1]).ready
    assert (check.kind, check.method, check.path) == ("chat_stream", "POST", "/v1/chat/completions")
    assert check.body["model"] == "qwen"
    assert check.body["max_tokens"] == 1
    assert check.body["stream"] is True
    plain = launch(EngineSpec(kind="vllm", model="a/b", arguments={"ready_with": "completion"}), placed()).ready
    assert (plain.kind, plain.path) == ("completion_stream", "/v1/completions")


def test_triton_is_asked_a_real_inference_once_it_has_a_sample():
    spec, place, *_rest = GOLDEN["triton"]
    assert launch(spec, place).ready.kind == "http"
    body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [0]}]}
    sampled = launch(EngineSpec.from_json({**spec.to_json(), "custom": {"ready_body": body}}), place)
    assert (sampled.ready.kind, sampled.ready.path) == ("triton_infer", "/v2/models/detector/infer")
    assert sampled.metrics_port == 18001
    assert [told for told in sampled.warnings if "no key" not in told] == []


@pytest.mark.parametrize("kind", ["vllm", "sglang", "tgi", "trtllm"])
def test_more_parallelism_than_gpus_is_refused_and_less_is_told(kind):
    spec = EngineSpec(kind=kind, version="1.0.0", model="a/b", tensor_parallel_size=4)
    with pytest.raises(InvalidInput, match="asks for 4 GPUs; the replica gets 2"):
        launch(spec, placed(gpu_count=2))
    assert any("gets 8 GPUs and uses 4" in told for told in launch(spec, placed(gpu_count=8)).warnings)


def test_the_engine_says_where_its_key_goes():
    assert launch(GOLDEN["vllm"][0], GOLDEN["vllm"][1]).api_key_variable == "VLLM_API_KEY"
    assert launch(GOLDEN["llamacpp"][0], GOLDEN["llamacpp"][1]).api_key_variable == "LLAMA_API_KEY"
    assert launch(GOLDEN["sglang"][0], GOLDEN["sglang"][1]).api_key_variable == "ENGINE_API_KEY"
    own = CustomCommand(command=["serve", "{port}"], api_key_variable="SERVE_KEY")
    assert launch(EngineSpec(kind="custom", image="a/b", custom=own), placed()).api_key_variable == "SERVE_KEY"


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_that_asks_for_no_key_is_said_to_be_open_to_whoever_reaches_it(kind):
    built = launch(*GOLDEN[kind][:2])
    is_told = any("asks callers for no key" in told for told in built.warnings)
    assert is_told == (built.api_key_variable is None)
    assert is_told == (kind in {"triton", "trtllm", "comfyui", "transformers", "custom"})


# What it is told, by which name, and whether a process that it spawns as multiprocessing does finds the same module again.
_SGLANG = """
import json, multiprocessing, sys

def child(pipe):
    pipe.send(__name__)

if __name__ == "__main__":
    mine, others = multiprocessing.get_context("spawn").Pipe()
    multiprocessing.get_context("spawn").Process(target=child, args=(others,)).start()
    print(json.dumps({"argv": sys.argv[1:], "spawned": mine.recv(), "is_seen": "canary" in open("/proc/self/cmdline").read()}))
"""


def test_sglang_gets_its_key_and_nobody_reads_it_from_the_list_of_processes(tmp_path):
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "launch_server.py").write_text(_SGLANG)
    command = launch(GOLDEN["sglang"][0], GOLDEN["sglang"][1]).command
    environment = {"PYTHONPATH": str(tmp_path), "ENGINE_API_KEY": "canary"}
    done = subprocess.run(
        [sys.executable, *command[1:]], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    told = json.loads(done.stdout)
    assert told["argv"] == [*command[3:], "--api-key", "canary"]
    assert told["is_seen"] is False
    assert told["spawned"] == "__mp_main__"
