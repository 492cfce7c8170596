"""Requests to chats and webhooks, their answers, and what an answer means."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["delivered", "retry", "refused", "gone"]


@dataclass(frozen=True, slots=True)
class Request:
    """A POST. body: as it goes over the wire, because signatures are made of it."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status_code: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one attempt.

    retry: may work later. refused: will not work until somebody changes something. gone: the receiver wants no more.
    sentence: for people, with cause and next step. is_uncertain: it may have arrived though nobody said so.
    """

    outcome: Outcome
    sentence: str = ""
    status_code: int | None = None
    error_code: str = ""
    retry_after_seconds: float | None = None
    is_uncertain: bool = False
