"""Arguments are typed, bounded and screened; every refusal names the argument and the next step."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from endpoints.engines.base import EngineSpec, Place
from endpoints.engines.registry import ENGINES, launch
from panel.core.errors import InvalidInput

PLACE = Place(port=8001, gpu_count=1)


def refusal(**changes):
    given_ = {"kind": "vllm", "model": "Qwen/Qwen3-8B", **changes}
    with pytest.raises(InvalidInput) as error:
        launch(EngineSpec.from_json(given_), PLACE)
    return error.value


@pytest.mark.parametrize(
    ("arguments", "field", "words"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs", "must lie between 1 and 4096"),
        ({"max_num_seqs": 1.5}, "max_num_seqs", "whole number"),
        ({"max_num_seqs": True}, "max_num_seqs", "must be a number"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization", "between 0.05 and 0.99"),
        ({"gpu_memory_utilization": "much"}, "gpu_memory_utilization", "must be a number"),
        ({"dtype": "int3"}, "dtype", "choose one of: auto"),
        ({"quantization": "--port 1"}, "quantization", "must be one word"),
        ({"enforce_eager": "yes"}, "enforce_eager", "true or false"),
        ({"max_nums_seqs": 3}, "max_nums_seqs", "There is no argument"),
    ],
)
def test_a_bad_argument_is_named_with_what_would_do(arguments, field, words):
    error = refusal(arguments=arguments)
    assert error.field == field
    assert words in error.message


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--max-num-seqs", "1"], "is set by the panel"),
        (["--max_num_seqs=1"], "is set by the panel"),
        (["--max-num-s", "1"], "is set by the panel"),
        (["--port=9"], "is set by the panel"),
        (["--api-key", "x"], "seen by everyone"),
        (["--config", "x.yaml"], "cannot be checked"),
        (["seven"], "begin with a flag"),
        (["--seed", "a\nb"], "control characters"),
        (["--seed", ""], "empty"),
    ],
)
def test_extra_arguments_are_screened(extra, words):
    assert words in refusal(extra_arguments=extra).message


def test_llamacpp_never_gets_tools_that_run_commands():
    assert "run commands on the server" in refusal(kind="llamacpp", extra_arguments=["--tools", "all"]).message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model": "../../etc/passwd"}, "model"),
        ({"model": "--port"}, "model"),
        ({"model": "a b"}, "model"),
        ({"model": ""}, "model"),
        ({"model": "relative/path/x", "source": "path"}, "model"),
        ({"model": "/srv/../etc", "source": "path"}, "model"),
        ({"revision": "-x"}, "revision"),
        ({"revision": "a..b"}, "revision"),
        ({"served_name": "a b"}, "served_name"),
        ({"image": "-v/:/host"}, "image"),
        ({"version": "0.1; rm"}, "version"),
        ({"kind": "unknown"}, "kind"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size"),
        ({"start_limit_seconds": 1}, "start_limit_seconds"),
    ],
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(changes, field):
    assert refusal(**changes).field == field


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gpus": 1}, "gpus"),
        ({"environment": {"1bad": "x"}}, "environment"),
        ({"environment": {"A": 1}}, "environment"),
        ({"arguments": {"max_num_seqs": None}}, "arguments"),
        ({"custom": {"command": "serve"}}, "custom.command"),
    ],
)
def test_a_field_of_the_wrong_form_is_refused_and_named(changes, field):
    assert refusal(**changes).field == field


def test_a_missing_kind_is_named():
    with pytest.raises(InvalidInput) as error:
        EngineSpec.from_json({"model": "a/b"})
    assert error.value.field == "kind"


@given(
    kind=st.sampled_from([kind for kind in ENGINES if ENGINES[kind].arguments]),
    data=st.data(),
)
def test_whatever_is_given_is_either_refused_or_stands_in_the_command_within_its_bounds(kind, data):
    table = ENGINES[kind].arguments
    argument = data.draw(st.sampled_from([one for one in table if one.flag and one.type in {"integer", "number"}]))
    value = data.draw(st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=True)))
    spec = EngineSpec(
        kind=kind,
        source="path",
        model="/srv/m",
        served_name="" if kind == "transformers" else "m",
        version="1.0",
        image="own/image:1",
        arguments={argument.name: value},
    )
    is_whole = argument.type == "number" or float(value).is_integer()
    if not (is_whole and argument.minimum <= value <= argument.maximum):
        with pytest.raises(InvalidInput) as refused:
            launch(spec, Place(port=8001, gpu_count=8192))
        assert refused.value.field == argument.name
        return
    command = launch(spec, Place(port=8001, gpu_count=8192)).command
    joined = dict(word.split("=", 1) for word in command if word.startswith(f"{argument.flag}="))
    text = joined[argument.flag] if joined else command[command.index(argument.flag) + 1]
    assert (argument.minimum or 0) <= float(text) + 1e-9
    assert float(text) <= (argument.maximum or float("inf")) * 1.00001
