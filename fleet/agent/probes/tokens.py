"""What the events of an OpenAI-style stream say: first tokens, counts, errors within a 200, an end that is none."""

import json
from typing import Any, Final

from fleet.agent.probes.result import ProbeError, Trace, plain
from fleet.agent.probes.sse import Event

MOST_GAPS: Final = 20_000
MOST_TOKENS: Final = 10_000_000
DONE: Final = "[DONE]"


class Reading:
    """Reads a stream's events into a trace.

    A delta counts as a token's only with text, reasoning or arguments of a tool call in it: the first event of most engines
    has a role and nothing else. Several tokens may come in one event.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._with_text = 0
        self._is_finished = self._is_done = False

    def take(self, stamp: float, event: Event) -> None:
        """Read one event, stamped when its last byte came. Raises ProbeError with outcome stream_error."""
        trace = self._trace
        if trace.first_event is None:
            trace.first_event = stamp
        if event.data.strip() == DONE:
            self._is_done = True
            return
        said = _parse(event)
        _refuse_error(said, event)
        self._take_usage(said.get("usage"))
        choices = said.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        if choice.get("finish_reason"):
            self._is_finished = True
        text, other = contents(choice)
        if text and trace.first_text is None:
            trace.first_text = stamp
        if text or other:
            self._take_token(stamp)

    def _take_token(self, stamp: float) -> None:
        trace = self._trace
        if trace.first_token is None:
            trace.first_token = stamp
        elif trace.last_token is not None and len(trace.gaps) < MOST_GAPS:
            trace.gaps.append(stamp - trace.last_token)
        trace.last_token = stamp
        self._with_text += 1

    def _take_usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
        if prompt is not None:
            self._trace.prompt_tokens = prompt
        if completion is not None:
            self._trace.completion_tokens, self._trace.tokens = completion, "usage"

    def end(self) -> None:
        """Judge the whole stream. Raises ProbeError: stream_error without a proper end, empty without any text."""
        if self._trace.first_event is None:
            raise ProbeError("stream_error", "no_events", "the answer has no event")
        if not self._is_finished:
            how = "[DONE] came, but no finish_reason" if self._is_done else "neither finish_reason nor [DONE] came"
            raise ProbeError("stream_error", "unfinished", how)
        if self._trace.first_token is None:
            raise ProbeError("empty", "no_text", "the stream ended properly without any text")
        if not self._trace.tokens:
            self._trace.completion_tokens, self._trace.tokens = self._with_text, "estimated"


def tpot_seconds(trace: Trace) -> float | None:
    """Return the time per token after the first; None for fewer than two tokens or where the engine did not count them."""
    n = trace.completion_tokens
    if trace.tokens != "usage" or n is None or n < 2 or trace.first_token is None or trace.last_token is None:
        return None
    return (trace.last_token - trace.first_token) / (n - 1)


def contents(choice: dict[str, Any]) -> tuple[bool, bool]:
    """Say whether a choice holds text, and whether it holds reasoning or arguments of a tool call."""
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text")), False
    calls = delta.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    arguments = any(isinstance(function, dict) and function.get("arguments") for function in functions)
    return bool(delta.get("content")), bool(delta.get("reasoning_content") or delta.get("reasoning") or arguments)


def _parse(event: Event) -> dict[str, Any]:
    try:
        said = json.loads(event.data)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise ProbeError("stream_error", "not_json", f"an event is no JSON object: {plain(event.data[:120])}")
    return said


def _refuse_error(said: dict[str, Any], event: Event) -> None:
    error = said.get("error")
    if error or event.name == "error":
        raise ProbeError("stream_error", "error_event", error_text(said))


def error_text(said: Any) -> str:
    """Return what an engine says of an error, in whichever of the usual shapes."""
    for _ in range(3):
        if not isinstance(said, dict):
            break
        said = said.get("error") or said.get("message") or said.get("detail") or json.dumps(said)
    return plain(str(said)[:1_000])


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None
