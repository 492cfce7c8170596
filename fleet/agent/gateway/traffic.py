"""From lines of the access log to what is reported: counts and histograms of one endpoint in one span of ten seconds."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from fleet.agent.orders import EndpointTraffic, Histogram

SPAN_MS: Final = 10_000
BUCKETS_PER_DOUBLING: Final = 32
SHORTEST_MS: Final = 0.001
# The replica, or the way to it, broke off what had begun. A code of 200 was sent by then: the flags tell.
BROKEN_FLAGS: Final = frozenset({"UPE", "UC", "UR", "LR", "UT", "SI", "DT", "UMSDR", "URX", "UF"})
CALLER_LEFT_FLAGS: Final = frozenset({"DC", "DR"})
LIMITED_FLAGS: Final = frozenset({"RL", "UO"})
# What engines do not report is estimated: a token for each event of a stream, and one for so many bytes of the request.
BYTES_PER_TOKEN: Final = 4


class Line(msgspec.Struct):
    """One request; see LOG_FIELDS in listening.py. Durations in microseconds, d in milliseconds."""

    t: str
    c: int | None = None
    f: str = "-"
    e: str | None = None
    q: int | None = None
    b: int | None = None
    b2: int | None = None
    d: int | None = None
    i: int = 0
    o: int = 0
    a: int | None = None
    k: str | None = None
    n: float | None = None
    v: float | None = None
    r: str | None = None
    p: str | None = None

    @property
    def ended_ms(self) -> int:
        """When it ended, on the machine's wall clock."""
        return int(self.t) + (self.d or 0)


class _Durations:
    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.sum_ms = 0.0

    def add(self, ms: float) -> None:
        ms = max(ms, SHORTEST_MS)
        self.buckets[bucket_of(ms)] += 1
        self.sum_ms += ms

    def histogram(self) -> Histogram:
        return Histogram(sum(self.buckets.values()), round(self.sum_ms, 3), dict(self.buckets))


def bucket_of(ms: float) -> int:
    """Return the bucket k of a duration with 2**(k/32) <= ms < 2**((k+1)/32)."""
    return math.floor(BUCKETS_PER_DOUBLING * math.log2(ms))


class EndpointSums:
    """What went through for one endpoint, summed up line by line."""

    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.queue, self.first_byte, self.total = _Durations(), _Durations(), _Durations()
        self.bytes_in = self.bytes_out = self.retries = self.limited = 0
        self.by_key: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.estimated: Counter[str] = Counter()
        self.probes = self.probe_tokens = 0

    def add(self, line: Line) -> None:
        """Count one request; one of the panel's own probes is no load, and stands only among what its key has used."""
        if line.k is not None:
            self.by_key[line.k] += 1
            self._add_tokens(line.k, line)
        if line.p is not None:
            self.probes += 1
            return
        flags = frozenset(line.f.split(","))
        self.statuses[status_of(line.c, flags)] += 1
        if line.c == 429 and (flags & LIMITED_FLAGS or line.r):
            self.limited += 1
        if line.q is not None:
            self.queue.add(line.q / 1000)
        first_byte = line.b2 if line.b is None else line.b
        if first_byte is not None:
            self.first_byte.add(first_byte / 1000)
        if line.d is not None:
            self.total.add(float(line.d))
        self.bytes_in += line.i
        self.bytes_out += line.o
        self.retries += max((line.a or 1) - 1, 0)

    def _add_tokens(self, key: str, line: Line) -> None:
        reported = int(line.n) if line.n is not None else 0
        estimated = int(line.v) + line.i // BYTES_PER_TOKEN if line.n is None and line.v else 0
        if line.n is not None:
            self.tokens[key] += reported
        elif estimated:
            self.estimated[key] += estimated
        if line.p is not None:
            self.probe_tokens += reported + estimated

    def traffic(self, endpoint: str, in_flight: int | None) -> EndpointTraffic:
        """Return what is reported of it."""
        return EndpointTraffic(
            endpoint=endpoint,
            requests=sum(self.statuses.values()),
            statuses=dict(self.statuses),
            queue=self.queue.histogram(),
            first_byte=self.first_byte.histogram(),
            total=self.total.histogram(),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            in_flight=in_flight,
            retries=self.retries,
            limited=self.limited,
            requests_by_key=dict(self.by_key),
            tokens_by_key=dict(self.tokens),
            estimated_tokens_by_key=dict(self.estimated),
            probes=self.probes,
            probe_tokens=self.probe_tokens,
        )


def status_of(code: int | None, flags: frozenset[str]) -> str:
    """Return the class of a request's outcome; one that was cut logs the code that it began with."""
    if flags & CALLER_LEFT_FLAGS:
        return "left"
    if code is None or code == 0:
        return "cut"
    if code < 400 and flags & BROKEN_FLAGS:
        return "cut"
    return f"{code // 100}xx"


def traffic_of(lines: Iterable[Line], in_flight: Mapping[str, int]) -> list[EndpointTraffic]:
    """Return what went through, by endpoint; those with requests under way and none that ended included."""
    sums: dict[str, EndpointSums] = {}
    for line in lines:
        if line.e is not None:
            sums.setdefault(line.e, EndpointSums()).add(line)
    for endpoint, count in in_flight.items():
        if count:
            sums.setdefault(endpoint, EndpointSums())
    return [sums[name].traffic(name, in_flight.get(name) if in_flight else None) for name in sorted(sums)]


def span_of(at_ms: int) -> int:
    """Return the start of the span that a moment lies in."""
    return at_ms - at_ms % SPAN_MS
