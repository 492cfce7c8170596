"""Frames of one topic on their way: numbered, merged while they wait, encoded once.

`seq` counts what was published on a topic in this process. A delta covers `from`..`seq`: a browser that has seen
`from - 1` or later has missed nothing, however much was merged for it on the way.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from panel.core.clock import now
from panel.core.live import LiveData

MAX_KEYS: Final = (
    5_000  # per section, oldest dropped: what never repeats (events) must not grow for a browser that sleeps
)

_encoder = msgspec.json.Encoder()


def merge(into: LiveData, newer: LiveData) -> None:
    """Merge `newer` into `into`, section by section, key by key; the newest value wins whole. Keeps `MAX_KEYS`."""
    for section, entries in newer.items():
        known = into.get(section)
        if known is None:
            into[section] = dict(entries)
            continue
        known.update(entries)
        if len(known) > MAX_KEYS:
            for key in list(known)[: len(known) - MAX_KEYS]:
                del known[key]


@dataclass(slots=True)
class Frame:
    """One message for a browser. `text` is encoded when first asked for and shared by every socket."""

    type: Literal["snapshot", "delta"]
    topic: str
    first_seq: int
    seq: int
    data: LiveData
    at: datetime = field(default_factory=now)
    _text: str | None = None

    @property
    def text(self) -> str:
        """The frame as JSON."""
        if self._text is None:
            body: dict[str, Any] = {"type": self.type, "topic": self.topic, "seq": self.seq, "at": self.at.isoformat()}
            if self.type == "delta":
                body["from"] = self.first_seq
            body["data"] = self.data
            self._text = _encoder.encode(body).decode()
        return self._text

    def followed_by(self, newer: "Frame") -> "Frame":
        """Return one frame that says both: a snapshot stays a snapshot, deltas join their ranges."""
        if newer.type == "snapshot":
            return newer
        data: LiveData = {}
        merge(data, self.data)
        merge(data, newer.data)
        return Frame(self.type, self.topic, self.first_seq, newer.seq, data, newer.at)


class Mailbox:
    """What one socket has still to send: at most one frame per topic, so a slow browser costs bounded memory."""

    __slots__ = ("_frames", "_held", "merged")

    def __init__(self) -> None:
        self._frames: dict[str, Frame] = {}
        self._held: set[str] = set()
        self.merged = 0

    def hold(self, topic: str) -> None:
        """Keep back this topic's deltas until its snapshot is put."""
        self._held.add(topic)

    def put(self, frame: Frame) -> bool:
        """Add a frame, merging it into the waiting one of its topic. Returns whether there is something to send."""
        waiting = self._frames.get(frame.topic)
        if frame.type == "snapshot":
            self._held.discard(frame.topic)
            if waiting is not None and waiting.type == "delta" and waiting.seq > frame.seq:
                frame = Frame("snapshot", frame.topic, frame.seq, frame.seq, frame.data, frame.at).followed_by(waiting)
            self._frames[frame.topic] = frame
        elif waiting is None:
            self._frames[frame.topic] = frame
        else:
            self.merged += 1
            self._frames[frame.topic] = waiting.followed_by(frame)
        return frame.topic not in self._held

    def take(self) -> list[Frame]:
        """Return and remove what may be sent now, oldest topic first."""
        if not self._held:
            frames = list(self._frames.values())
            self._frames = {}
            return frames
        ready = [frame for topic, frame in self._frames.items() if topic not in self._held]
        for frame in ready:
            del self._frames[frame.topic]
        return ready

    def forget(self, topic: str) -> None:
        """Drop what waits for a topic that was left."""
        self._frames.pop(topic, None)
        self._held.discard(topic)
