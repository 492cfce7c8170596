"""What other apps add to the arguments of a job as its agent hears them: what is secret, or too large to be kept twice."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fleet.enums import JobKind
from fleet.models import Job

# Given a job, return more of its arguments.
More = Callable[[Job], Mapping[str, Any]]
_more: Final[dict[JobKind, More]] = {}


def register_arguments(kind: JobKind, more: More) -> None:
    """Add to the arguments of a kind (once, when the app starts)."""
    _more[kind] = more


def arguments_of(job: Job) -> dict[str, Any]:
    """Return a job's arguments for its agent. One query for each job of a registered kind, at most."""
    more = _more.get(JobKind(job.kind))
    return {**job.arguments, **(more(job) if more is not None else {})}
