"""Metrics pages: names by version, sums and maxima by their own rule, broken lines, and what is missing by name."""

import math

import hypothesis.strategies as st
import pytest
import yaml
from hypothesis import given
from prometheus_client.parser import text_string_to_metric_families

from endpoints.engines.readings import LABELS, sentences_for_missing
from fleet.agent.engines.exposed.families import FAMILIES
from fleet.agent.engines.exposed.page import read_page
from fleet.agent.engines.exposed.reading import HISTOGRAMS, NUMBERS, read_metrics
from tests.endpoints.engines.samples import sample


def test_an_old_page_and_the_new_name_give_the_same_field():
    old = read_metrics(sample("vllm_0.5_metrics.txt"), kind="vllm", version="0.5.4")
    assert old.kv_cache_usage_percent == pytest.approx(0.26235242674994863)
    new = read_metrics('vllm:kv_cache_usage_perc{model_name="m"} 0.0026235242674994863\n', kind="vllm")
    assert new.kv_cache_usage_percent == pytest.approx(old.kv_cache_usage_percent)


@pytest.mark.parametrize("version", ["", "0.9.2", "0.26.0", "nightly"])
def test_where_both_names_stand_the_new_one_counts_and_nothing_doubles(version):
    page = "vllm:gpu_cache_usage_perc 0.2\nvllm:kv_cache_usage_perc 0.5\n"
    assert read_metrics(page, kind="vllm", version=version).kv_cache_usage_percent == 50.0


def test_a_stated_version_decides_and_a_wrong_one_does_not_blind():
    page = "vllm:gpu_cache_usage_perc 0.2\nvllm:kv_cache_usage_perc 0.5\n"
    assert read_metrics(page, kind="vllm", version="v0.8.5.post1").kv_cache_usage_percent == 20.0
    assert read_metrics("vllm:gpu_cache_usage_perc 0.2\n", kind="vllm", version="0.26").kv_cache_usage_percent == 20.0


def test_requests_of_several_served_names_are_added_and_kept_apart():
    found = read_metrics(sample("vllm_0.5_metrics.txt"), kind="vllm")
    assert (found.running, found.waiting) == (3, 5)
    assert found.waiting_by_model == {"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8": 2, "other/OTHER": 3}


def test_data_parallel_engines_have_queues_of_their_own_and_the_fullest_cache_counts():
    found = read_metrics(sample("vllm_dp_engines.txt"), kind="vllm")
    assert (found.waiting, found.running, found.kv_cache_usage_percent) == (7, 15, 97)
    assert found.waiting_by_model == {"m": 7}


def test_ranks_of_one_engine_count_once_and_priorities_not_beside_their_total():
    page = "".join(
        f'sglang:num_running_reqs{{dp_rank="{dp}",tp_rank="{tp}"}} {4 + dp}\n' for dp in (0, 1) for tp in (0, 1)
    )
    page += 'sglang:num_queue_reqs{priority=""} 3\nsglang:num_queue_reqs{priority="1"} 3\n'
    found = read_metrics(page, kind="sglang")
    assert (found.running, found.waiting) == (9, 3)


def test_odd_numbers_times_and_blank_lines_are_read():
    page = read_page(sample("vllm_0.5_metrics.txt"))
    assert page.samples["process_virtual_memory_bytes"][0].value == 39_024_848_896
    assert page.bad_lines == 0
    small = read_page("a 3.9024848896e+010\nb NaN\nc +Inf 1700000000000\n\n# stray\nd -1e-03 1700000000\n")
    assert small.samples["a"][0].value == 39_024_848_896
    assert math.isnan(small.samples["b"][0].value)
    assert math.isinf(small.samples["c"][0].value)
    assert small.samples["d"][0].value == -0.001
    assert read_page(sample("dcgm_4xT4.prom")).bad_lines == 0


def test_a_broken_line_costs_that_line_and_is_counted():
    found = read_metrics("vllm:num_requests_running 2\nvllm:num_requests_waiting{ 5\nvllm:kv_cache_usage_perc 0.1\n")
    assert (found.running, found.waiting, found.kv_cache_usage_percent) == (2, None, 10)
    assert found.bad_lines == 1
    assert "waiting" in found.missing


def test_a_value_that_is_no_number_is_missing_and_not_zero():
    found = read_metrics("vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\n")
    assert (found.running, found.waiting) == (None, 0)
    assert sentences_for_missing(found.missing)["running"] == "Requests running: not exposed by this engine version"


def test_histograms_of_an_old_page_are_whole():
    found = read_metrics(sample("vllm_0.5_metrics.txt"), kind="vllm", version="0.5.4")
    first = found.time_to_first_token
    assert (first.count, first.sum_seconds) == (9, pytest.approx(0.5106480121612549))
    assert first.buckets[-1] == (math.inf, 9)
    assert dict(first.buckets)[0.06] == 6
    assert found.inter_token.count == 2537
    assert (found.prompt_tokens_total, found.generation_tokens_total, found.preemptions_total) == (90, 2546, 0)
    assert found.missing == ("queue_time", "prefill_time", "decode_time")


def test_buckets_of_several_engines_are_added_bound_by_bound():
    page = ""
    for engine, low in ((0, 990), (1, 10)):
        page += f'vllm:time_to_first_token_seconds_bucket{{engine="{engine}",le="0.1"}} {low}\n'
        page += f'vllm:time_to_first_token_seconds_bucket{{engine="{engine}",le="+Inf"}} {low + 10}\n'
    page += 'vllm:time_to_first_token_seconds_bucket{engine="0",le="0.2"} 995\n'
    assert read_metrics(page).time_to_first_token.buckets == ((0.1, 1000), (math.inf, 1020))


def test_every_reading_of_vllm_0_26_has_a_name_that_this_version_exposes():
    names = {line.split()[0] for line in sample("vllm_0.26_families.txt").splitlines() if line.startswith("vllm:")}
    for field, reading in FAMILIES["vllm"].items():
        current = [named.name for named in reading.names if named.is_of((0, 26, 0))]
        assert set(current) & names, field
        assert not {named.name for named in reading.names if not named.is_of((0, 26, 0))} & names, field


def test_the_names_agree_with_the_map_of_others():
    runtimes = yaml.safe_load(sample("metric_name_map.yaml"))["runtime_mapping"]
    fields = {
        "num_requests_running": "running",
        "num_requests_waiting": "waiting",
        "kv_cache_usage_ratio": "kv_cache_usage_percent",
        "prompt_tokens": "prompt_tokens_total",
        "generation_tokens": "generation_tokens_total",
        "time_to_first_token_seconds": "time_to_first_token",
        "inter_token_latency_seconds": "inter_token",
        "e2e_request_latency_seconds": "request_latency",
        "request_queue_time_seconds": "queue_time",
        "request_preemptions": "preemptions_total",
    }
    for runtime, engine in (("vLLM", "vllm"), ("SGLang", "sglang")):
        for theirs, meaning in ((name, value) for part in runtimes[runtime].values() for name, value in part.items()):
            field = fields.get(meaning.partition(":")[2])
            if field is None:
                continue
            ours = {named.name.removesuffix("_total") for named in FAMILIES[engine][field].names}
            assert theirs in ours, (theirs, field)


def test_tgi_tells_queue_and_batch_and_says_what_it_does_not_tell():
    found = read_metrics(sample("engine-metrics/tgi-excerpt.prom"), kind="tgi")
    assert (found.running, found.waiting) == (0, 0)
    assert {"kv_cache_usage_percent", "time_to_first_token", "preemptions_total"} <= set(found.missing)


def test_triton_tells_what_waits_over_all_models():
    found = read_metrics(sample("engine-metrics/triton-T4.prom"), kind="triton")
    assert found.waiting == 0
    assert found.progress == 3
    assert set(found.waiting_by_model) >= {"simple", "densenet_onnx"}
    assert "running" in found.missing


def test_trtllm_is_known_by_its_bare_names_and_by_its_prefix():
    excerpt = "\n".join(
        line for line in sample("engine-metrics/trtllm-serve-excerpt.txt").splitlines() if line[:1] not in "$["
    )
    assert read_metrics(excerpt).engine == "trtllm"
    assert read_metrics(excerpt, kind="trtllm").request_latency.sum_seconds == pytest.approx(3.4878239994868636)
    new = read_metrics(
        "trtllm_num_requests_running 2\ntrtllm_num_requests_waiting 1\ntrtllm_kv_cache_utilization 0.5\n"
    )
    assert (new.engine, new.running, new.waiting, new.kv_cache_usage_percent) == ("trtllm", 2, 1, 50)


def test_llamacpp_and_a_sleeping_vllm():
    found = read_metrics(
        "llamacpp:requests_processing 2\nllamacpp:requests_deferred 22\nllamacpp:tokens_predicted_total 900\n"
    )
    assert (found.engine, found.running, found.waiting, found.progress) == ("llamacpp", 2, 22, 900)
    page = 'vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state="%s"} 1\n'
    assert read_metrics(page % "weights_offloaded").is_asleep
    assert not read_metrics(page % "awake").is_asleep


def test_a_page_of_somebody_else_is_nobody_s():
    assert read_metrics(sample("dcgm_4xT4.prom")) is None
    assert read_metrics("") is None
    assert read_metrics("<html>not found</html>", kind="vllm") is None


def test_every_reading_has_a_label():
    assert set(LABELS) == {*NUMBERS, *HISTOGRAMS}


@given(st.text())
def test_no_page_breaks_the_reader(text):
    read_metrics(text, kind="vllm")


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 1)), min_size=1, max_size=8))
def test_queues_add_and_caches_never_exceed_the_fullest(engines):
    page = "".join(
        f'vllm:num_requests_waiting{{engine="{n}"}} {waiting}\nvllm:kv_cache_usage_perc{{engine="{n}"}} {usage!r}\n'
        for n, (waiting, usage) in enumerate(engines)
    )
    found = read_metrics(page, kind="vllm")
    assert found.waiting == sum(waiting for waiting, _usage in engines)
    assert found.kv_cache_usage_percent == pytest.approx(100 * max(usage for _waiting, usage in engines))


def test_ranks_of_one_engine_count_once_in_histograms_too():
    page = "".join(
        f'sglang:time_to_first_token_seconds_bucket{{tp_rank="{rank}",le="{bound}"}} {number}\n'
        for rank in (0, 1)
        for bound, number in (("0.1", 3), ("+Inf", 4))
    )
    assert read_metrics(page, kind="sglang").time_to_first_token.buckets == ((0.1, 3), (math.inf, 4))


def test_buckets_that_do_not_add_up_are_refused_by_name_and_number_and_sum_stay():
    page = "".join(
        f'vllm:e2e_request_latency_seconds_bucket{{le="{bound}"}} {number}\n'
        for bound, number in (("0.1", 0), ("0.2", 45.2), ("0.3", 9.3), ("+Inf", 0))
    )
    page += "vllm:e2e_request_latency_seconds_count 75\nvllm:e2e_request_latency_seconds_sum 21\n"
    found = read_metrics(page, kind="vllm")
    assert found.broken == ("request_latency",)
    assert (found.request_latency.buckets, found.request_latency.count, found.request_latency.sum_seconds) == (
        (),
        75,
        21,
    )


def test_a_hundred_thousand_lines_of_somebody_else_are_passed_over_quickly():
    page = "".join(f'go_memstats_{n}{{a="b"}} {n}\n' for n in range(100_000)) + "vllm:num_requests_running 1\n"
    assert read_metrics(page).running == 1


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r", exclude_categories=("Cs", "Cc", "Zl", "Zp")))
_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@given(
    _NAMES,
    st.dictionaries(_NAMES, _TEXT, max_size=4),
    st.one_of(st.floats(), st.integers(-(2**53), 2**53)),
    st.one_of(st.none(), st.integers(0, 2**40)),
)
def test_what_is_read_is_what_the_reference_parser_reads(name, labels, value, time):
    escaped = (
        f'{key}="{text}"'
        for key, text in (
            (key, text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for key, text in labels.items()
        )
    )
    line = f"{name}{{{','.join(escaped)}}} {value!r}{'' if time is None else f' {time}'}"
    (family,) = text_string_to_metric_families(line + "\n")
    (reference,) = family.samples
    (found,) = read_page(line + "\n").samples[name]
    assert found.labels == reference.labels
    assert found.value == reference.value or (math.isnan(found.value) and math.isnan(reference.value))


@pytest.mark.parametrize(
    "line",
    ['a{b="c} 1', 'a{b="c"', "a{b=c} 1", "a", "a 1_000", "a 0x10", "a 1 2 3", 'a{b="c" d="e"} 1', "1a 2", "a{} ", '{b="c"} 1'],
)  # fmt: skip
def test_a_line_that_is_none_is_counted_and_nothing_is_made_of_it(line):
    page = read_page(f"{line}\nb 2\n")
    assert (list(page.samples), page.bad_lines) == (["b"], 1)
