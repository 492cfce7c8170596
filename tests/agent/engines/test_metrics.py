"""What engines' own pages say, in the names of each engine and version."""

import pytest

from fleet.agent.engines.metrics import Counters, read_counters, read_queue

VLLM_OLD = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="org/model"} 3.0
vllm:num_requests_waiting{model_name="org/model"} 2.0
vllm:num_requests_waiting{model_name="other/OTHER"} 3.0
vllm:gpu_cache_usage_perc{model_name="org/model"} 0.25
vllm:generation_tokens_total{model_name="org/model"} 1.05e+03
process_open_fds 76.0
"""
VLLM_PARALLEL = """\
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} 5.0
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_running{engine="1",model_name="m"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.31
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.97
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 10
vllm:iteration_tokens_total_count{engine="1",model_name="m"} 5
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9
"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (VLLM_OLD, Counters("vllm", 3.0, 5.0, 1050.0, 25.0)),
        (VLLM_PARALLEL, Counters("vllm", 15.0, 7.0, 15.0, 97.0)),
        (
            (
                'sglang:num_running_reqs{model_name="m"} 4\nsglang:num_queue_reqs 1\nsglang:token_usage 0.5\n'
                "sglang:generation_tokens_total 70\nsglang:prompt_tokens_total 30\n"
            ),
            Counters("sglang", 4.0, 1.0, 100.0, 50.0),
        ),
        (
            'tgi_queue_size 2.0\ntgi_batch_current_size 8.0\ntgi_batch_inference_count{method="decode"} 41\n',
            Counters("tgi", 8.0, 2.0, 41.0, None),
        ),
        (
            (
                'nv_inference_pending_request_count{model="a"} 1\nnv_inference_pending_request_count{model="b"} 2\n'
                'nv_inference_exec_count{model="a"} 3\n'
            ),
            Counters("triton", None, 3.0, 3.0, None),
        ),
        (
            "llamacpp:requests_processing 1\nllamacpp:requests_deferred 6\nllamacpp:n_decode_total 12\n",
            Counters("llamacpp", 1.0, 6.0, 12.0, None),
        ),
        ('e2e_request_latency_seconds_count{model_name="undefined"} 9\n', Counters("trtllm", progress=9.0)),
    ],
)
def test_each_engine_is_read_by_its_own_names(page, expected):
    assert read_counters(page) == expected


def test_what_a_page_lacks_is_missing_and_not_zero():
    counters = read_counters("vllm:generation_tokens_total 5\n")
    assert (counters.running, counters.waiting, counters.kv_cache_percent, counters.in_flight) == (None,) * 4


@pytest.mark.parametrize(
    "page", ["", "[]", "<html>404</html>", "process_open_fds 3\n", "vllm:num_requests_running NaN\n"]
)
def test_a_page_of_no_known_engine_says_nothing(page):
    assert read_counters(page) is None


def test_an_engine_says_itself_that_it_sleeps():
    page = 'vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state="awake"} %d\n'
    page += 'vllm:engine_sleep_state{sleep_state="weights_offloaded"} %d\n'
    assert read_counters(page % (0, 1)).is_asleep
    assert not read_counters(page % (1, 0)).is_asleep


def test_a_queue_says_how_much_runs_and_waits_and_nothing_of_progress():
    page = '{"queue_running": [[3, "a", {}]], "queue_pending": [[4, "b", {}], [5, "c", {}]]}'
    assert read_queue(page) == Counters("comfyui", 1.0, 2.0, None, None)


@pytest.mark.parametrize(
    "page", ["", "[]", "<html>404</html>", '{"queue_running": []}', '{"queue_running": 1, "queue_pending": 2}']
)
def test_a_page_that_is_no_queue_says_nothing(page):
    assert read_queue(page) is None
