"""The sentences of verdicts, next steps, limits and changes, to be filled with numbers. Shares are filled in as percent."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring.diagnosis.enums import Limit, Verdict
from monitoring.diagnosis.report import ChangeKind

Text = str | Promise

VERDICTS: Final[Mapping[Verdict, Text]] = {
    Verdict.HEALTHY: _("healthy"),
    Verdict.NOT_ENOUGH_DATA: _("not enough data"),
    Verdict.AVAILABILITY: _("requests fail"),
    Verdict.VANTAGE_BAD: _("the prober itself is slow"),
    Verdict.COLD_START: _("cold start"),
    Verdict.DNS: _("name lookup"),
    Verdict.HANDSHAKE: _("new connections"),
    Verdict.DISTANCE: _("distance"),
    Verdict.GATEWAY: _("gateway"),
    Verdict.BUFFERING: _("a proxy buffers the stream"),
    Verdict.TRANSFER: _("transfer"),
    Verdict.PACKET_LOSS: _("packet loss"),
    Verdict.THROTTLED: _("the card is throttled"),
    Verdict.QUEUEING: _("queueing"),
    Verdict.PREFILL_BOUND: _("reading the prompt"),
    Verdict.DECODE: _("producing tokens"),
    Verdict.DECODE_BANDWIDTH: _("producing tokens, held up by the card's memory"),
    Verdict.FIXED_OVERHEAD: _("a fixed cost of every request"),
    Verdict.CPU: _("the processors"),
    Verdict.MIXED: _("network and host both"),
}

# By verdict; `_else`: where the number of the first form was not measured.
WHY: Final[Mapping[str, Text]] = {
    "healthy": _("The objective is kept: %(outside_ms)s ms outside, %(host_ms)s ms on the host."),
    "not_enough_data": _("%(pairs)s complete rounds were measured; a diagnosis needs 30."),
    "not_enough_data_else": _(
        "The host is slow by itself (usually %(host_p50_ms)s ms), and nothing that was measured says why."
    ),
    "availability": _(
        "%(errors)s of %(rounds)s requests failed, most of them here: %(phase)s. Before that, times say little."
    ),
    "vantage_bad": _("The place that measured was slow itself, so its times say nothing about the endpoint."),
    "cold_start": _("It was slow while something started, and is well outside of that time."),
    "cold_start_else": _(
        "Something was starting in most of this time; %(rounds_outside_markers)s rounds lie outside of it."
    ),
    "dns": _("Looking up the name takes %(dns_ms)s ms of usually %(outside_p50_ms)s ms."),
    "handshake": _("Opening a connection takes %(open_ms)s ms of usually %(outside_p50_ms)s ms; open ones do without."),
    "handshake_closed": _(
        "The server closes the connection after each answer; opening one takes %(open_ms)s ms of usually %(outside_p50_ms)s ms."
    ),
    "distance": _("One round trip takes %(rtt_ms)s ms, and open connections are slow as well: the server is far away."),
    "gateway": _("%(hop_ms)s ms pass that are neither the line nor the model: a gateway or proxy takes them."),
    "buffering": _(
        "The host streams its answer, but outside it arrives in one piece: something in between holds it back."
    ),
    "transfer": _("The body takes %(transfer_ms)s ms of usually %(outside_p50_ms)s ms: the line is too thin for it."),
    "packet_loss": _("%(syn_share)s %% of connections lost their first packet and waited a second to send it again."),
    "throttled": _("The card was held back in %(throttled_share)s %% of its readings."),
    "queueing": _("Requests spend %(queue_share)s %% of their time waiting for their turn."),
    "queueing_else": _(
        "A request takes %(quiet_ms)s ms alone and usually %(host_p50_ms)s ms now: the rest is waiting."
    ),
    "prefill_bound": _("Reading the prompt takes %(prefill_share)s %% of the time."),
    "prefill_bound_else": _(
        "%(prompt_share)s %% of a usual request grow with its prompt (%(slope_ms_per_token)s ms a token)."
    ),
    "decode": _("Producing tokens takes most of the time."),
    "decode_bandwidth": _(
        "Producing tokens takes most of the time, and the card waits for its memory (busy %(dram_active)s %%, tensor cores "
        "%(tensor_active)s %%)."
    ),
    "fixed_overhead": _("About %(intercept_ms)s ms go into every request, however short its prompt is."),
    "fixed_overhead_else": _(
        "The time goes neither into waiting nor into the prompt or tokens: every request has a fixed cost."
    ),
    "fixed_overhead_idle": _(
        "The card is at work %(sm_active)s %% of the time although requests are there, and the processors are not busy: "
        "something else takes the time."
    ),
    "cpu": _(
        "The card is at work %(sm_active)s %% of the time although requests are there: they wait for the processors."
    ),
    "cpu_else": _("The processors are %(cpu)s %% busy."),
    "mixed": _("The network takes %(network_share)s %% of the time, the host the rest, and both count: %(parts)s."),
}

# By kind of action; `_ms`: where a duration belongs to it.
ACTIONS: Final[Mapping[str, Text]] = {
    "nothing": _("Nothing has to be done."),
    "measure_more": _("Let %(rounds)s more rounds pass, half a minute each, and look again."),
    "run_sweeps": _("Run the length sweep and the concurrency sweep on the host; they show what the time depends on."),
    "fix_errors": _("Find out why requests fail (%(phase)s), and measure again afterwards."),
    "fix_vantage": _("Take load off the machine that measures, or measure from another place."),
    "wait": _("Wait until the deploy has settled, and measure again."),
    "keep_warm": _("Keep one replica running all the time, so that no caller waits for a start."),
    "fix_resolver": _("Let callers use a resolver near them, and raise the TTL of the name."),
    "keep_alive": _("Keep connections open: turn on keep-alive in the callers, and at the front that they talk to."),
    "move_region": _("Move a replica to a region near the callers: each round trip takes %(ms)s ms now."),
    "check_gateway": _(
        "Look at what the gateway does with a request (authentication, rules, logging): it takes %(ms)s ms."
    ),
    "stop_buffering": _(
        "Turn off buffering for this path in the proxy (X-Accel-Buffering: no, or proxy_buffering off)."
    ),
    "widen_uplink": _("Ask for more upstream bandwidth, or make the body smaller: it takes %(ms)s ms to arrive."),
    "check_route": _("Ask the provider about packet loss on this route, with the times of the rounds below."),
    "cool_card": _("Cool the card: check the fans and the air around it, or ask the provider for another one."),
    "raise_power_limit": _("Give the card its full power: raise the power limit, or ask the provider who lowered it."),
    "scale_to": _("Scale to %(replicas)s replicas (now %(now)s)."),
    "raise_max_num_seqs": _("Raise --max-num-seqs from %(now)s to %(to)s requests at once: there is memory for it."),
    "cache_prefixes": _("Turn on prefix caching, so that a beginning that prompts share is read once."),
    "add_compute": _(
        "Give the prompt more compute: a faster card, or one replica across two cards (tensor parallelism)."
    ),
    "quantise": _("Use quantised weights (INT8, FP8 or 4 bit): each token then moves half of the memory or less."),
    "profile_host": _("Profile one request on the host: tokenizer, templates, image decoding, logging."),
    "profile_host_ms": _(
        "Profile one short request on the host (tokenizer, templates, image decoding, logging): it takes %(ms)s ms before any of "
        "the prompt counts."
    ),
    "add_cpu": _("Give the engine more and faster processor cores, or take work off them (image and video decoding)."),
}

LIMITS: Final[Mapping[Limit, Text]] = {
    Limit.NO_WARM: _("Nothing was measured over an open connection; it was estimated."),
    Limit.NO_SWEEP: _("No concurrency sweep was run, so there is no knee."),
    Limit.NO_LENGTHS: _("No length sweep was run, so it is not known how the time depends on the prompt."),
    Limit.NO_PLATEAU: _("Throughput still grew at the end of the concurrency sweep."),
    Limit.LITTLE_DISAGREES: _(
        "The concurrency sweep contradicts itself: throughput times latency is not its concurrency."
    ),
    Limit.NO_GPU_ACTIVITY: _("The card does not tell what it is busy with."),
    Limit.NO_CPU: _("The load of the processors is not known."),
    Limit.SHARE_UNCLEAR: _("The share is close to where the verdict turns."),
    Limit.FEW_EVENTS: _("It was seen only once."),
}

CHANGES: Final[Mapping[ChangeKind, Text]] = {
    ChangeKind.MORE_ROUNDS: _("%(limit)s complete rounds (now %(now)s)"),
    ChangeKind.VANTAGE_WELL: _("a place to measure from that is well"),
    ChangeKind.ERRORS_BELOW: _("fewer than %(limit)s %% of requests failing (now %(now)s %%)"),
    ChangeKind.SETTLED: _("%(limit)s rounds outside of starts and deploys (now %(now)s)"),
    ChangeKind.OUTSIDE_OVER: _("a percentile outside of over %(limit)s ms (now %(now)s ms)"),
    ChangeKind.LOSS_BELOW: _("fewer than %(limit)s %% of connections with a lost packet (now %(now)s %%)"),
    ChangeKind.SHARE_BELOW: _("a share of the network below %(limit)s %% (now %(now)s %%)"),
    ChangeKind.SHARE_ABOVE: _("a share of the network above %(limit)s %% (now %(now)s %%)"),
    ChangeKind.HOST_OVER: _("a percentile on the host of over %(limit)s ms (now %(now)s ms)"),
    ChangeKind.HOST_UNDER: _("a percentile on the host of %(limit)s ms at most (now %(now)s ms)"),
    ChangeKind.WARM_UNDER: _("open connections that keep %(limit)s ms (now %(now)s ms)"),
    ChangeKind.WARM_OVER: _("open connections that miss %(limit)s ms (now %(now)s ms)"),
    ChangeKind.THROTTLED_BELOW: _(
        "a card that is held back in fewer than %(limit)s %% of its readings (now %(now)s %%)"
    ),
    ChangeKind.QUEUE_BELOW: _("a queue that takes less than %(limit)s %% of the time (now %(now)s %%)"),
    ChangeKind.QUIET_ABOVE: _("a request that takes over %(limit)s ms even when it is alone (now %(now)s ms)"),
    ChangeKind.PROMPT_BELOW: _("a prompt that takes less than %(limit)s %% of the time (now %(now)s %%)"),
    ChangeKind.PROMPT_ABOVE: _("a prompt that takes more than %(limit)s %% of the time (now %(now)s %%)"),
    ChangeKind.DECODE_BELOW: _("tokens that take less than %(limit)s %% of the time (now %(now)s %%)"),
    ChangeKind.CARD_ABOVE: _("a card at work for more than %(limit)s %% of the time (now %(now)s %%)"),
    ChangeKind.SWEEPS: _("sweeps over prompt lengths and concurrency on the host"),
}

PHASES: Final[Mapping[str, Text]] = {
    "start": _("before anything was sent"),
    "dns": _("looking up the name"),
    "tcp": _("connecting"),
    "tls": _("the TLS handshake"),
    "send": _("sending the request"),
    "wait": _("waiting for the answer"),
    "transfer": _("receiving the answer"),
    "done": _("what was answered"),
}
