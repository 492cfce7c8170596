"""Why a report is not taken: each reason with its HTTP status, a code for the agent and a sentence for its log."""

from panel.core.errors import FleetdeckError


class Refused(FleetdeckError):  # noqa: N818 - named like its siblings in panel.core.errors
    """A report that will never be stored as it is, or not now (`retry_after_seconds`)."""

    def __init__(self, status: int, code: str, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


def unavailable(message: str, *, retry_after_seconds: float = 2.0) -> Refused:
    """The panel cannot store right now; nothing was stored, the agent keeps the batch and sends it again."""
    return Refused(503, "unavailable", message, retry_after_seconds=retry_after_seconds)
