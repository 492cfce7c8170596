"""Chat and completion streams of OpenAI-compatible engines: times of first tokens, tokens, and the end."""

from typing import Any, Final

from fleet.agent.probes.job import Job
from fleet.agent.probes.plain_http import REDIRECTS, Body, judge
from fleet.agent.probes.result import ProbeError, plain
from fleet.agent.probes.sse import EventTooLongError, Parser
from fleet.agent.probes.target import Target
from fleet.agent.probes.tokens import Reading
from fleet.agent.probes.web import Request, request_of

PATHS: Final = {"chat": "/v1/chat/completions", "completion": "/v1/completions"}
REFUSES_USAGE: Final = frozenset({400, 422})


async def probe(job: Job) -> None:
    """Ask for one stream and read it to its end. Raises ProbeError: http, stream_error, empty, aborted."""
    is_asked = job.target.id not in job.without_usage
    try:
        await _stream(job, is_usage_asked=is_asked)
    except ProbeError as failure:
        if not is_asked or job.trace.status not in REFUSES_USAGE or "stream_options" not in failure.detail:
            raise
        # This engine does not know the question for its counts: it is never asked again, and this probe begins anew.
        job.without_usage.add(job.target.id)
        job.begin_again(is_from_start=True)
        await _stream(job, is_usage_asked=False)


async def _stream(job: Job, *, is_usage_asked: bool) -> None:
    listener = _Listener(job)
    answer = await job.ask(_request(job, is_usage_asked=is_usage_asked), listener.take)
    if answer.status in REDIRECTS:
        location = answer.headers.get("location", "").partition("?")[0]
        raise ProbeError("http", "redirect", plain(f"{answer.status} to {location}"))
    judge(job.target, answer, listener.body.text)
    kind = answer.headers.get("content-type", "")
    if not listener.has_events and "event-stream" not in kind:
        raise ProbeError(
            "stream_error", "no_stream", plain(f"the answer is {kind or 'of no type'}, not an event stream")
        )
    listener.end()


class _Listener:
    """Takes the pieces of a body: events of a good answer, the beginning of any."""

    def __init__(self, job: Job) -> None:
        self._trace = job.trace
        self._parser, self._reading = Parser(), Reading(job.trace)
        self._stamp = 0.0
        self.body = Body()
        self.has_events = False

    def take(self, stamp: float, data: bytes) -> None:
        self.body.add(stamp, data)
        if self._trace.status is None or self._trace.status >= 300:
            return
        self._stamp = stamp
        try:
            events = self._parser.feed(data)
        except EventTooLongError as error:
            raise ProbeError("stream_error", "event_too_long", str(error)) from None
        for event in events:
            self.has_events = True
            self._reading.take(stamp, event)

    def end(self) -> None:
        for event in self._parser.finish():
            self._reading.take(self._stamp, event)
        self._reading.end()


def _request(job: Job, *, is_usage_asked: bool) -> Request:
    target = job.target
    body = body_of(target, job.nonce, is_usage_asked=is_usage_asked)
    path = PATHS[target.kind] if target.path == "/" else target.path
    return request_of(target, job.vantage, method="POST", path=path, body=job.encoded(body))


def body_of(target: Target, nonce: str, *, is_usage_asked: bool) -> dict[str, Any]:
    """Return the body: the prompt after a unique beginning, so that no cache of prefixes makes the engine look faster."""
    prompt = f"[{nonce}] {target.prompt}"
    asked = {"prompt": prompt} if target.kind == "completion" else {"messages": [{"role": "user", "content": prompt}]}
    body: dict[str, Any] = {"max_tokens": target.max_tokens, "temperature": 0, "stream": True, **asked, **target.extra}
    if target.model:
        body["model"] = target.model
    if is_usage_asked:
        body["stream_options"] = {"include_usage": True}
    return body
