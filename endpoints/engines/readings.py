"""What the readings of engines are called, and what is said of those that an engine does not expose."""

from collections.abc import Iterable, Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

LABELS: Final[Mapping[str, Promise]] = {
    "running": _("Requests running"),
    "waiting": _("Requests waiting"),
    "kv_cache_usage_percent": _("KV cache usage"),
    "preemptions_total": _("Preemptions"),
    "prompt_tokens_total": _("Prompt tokens"),
    "generation_tokens_total": _("Generated tokens"),
    "requests_total": _("Requests answered"),
    "time_to_first_token": _("Time to the first token"),
    "inter_token": _("Time between tokens"),
    "queue_time": _("Time in the queue"),
    "prefill_time": _("Time for the prompt"),
    "decode_time": _("Time for the answer's tokens"),
    "request_latency": _("Time of a whole request"),
}


def sentences_for_missing(names: Iterable[str]) -> dict[str, str]:
    """Return for each missing reading what to show in its place; a name that is not known here is passed over."""
    return {
        name: gettext("%(reading)s: not exposed by this engine version") % {"reading": LABELS[name]}
        for name in names
        if name in LABELS
    }
