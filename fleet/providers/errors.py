"""What can go wrong between the panel and a provider.

ProviderError
├── AccessRefused      the key is wrong, expired, or may not do this
├── Refused            a definite no: no capacity, no quota, no balance, a request that cannot be met
├── Throttled          asked too often; retry_after_seconds says when again
├── NotThere           the machine (or offer) is unknown to the provider
├── Unavailable        the provider did not do it and says so by being down (a read failed, a connection was refused)
├── OutcomeUnknown     a write was sent and its answer was lost: it may have happened
└── NotUnderstood      an answer whose form this version does not know

A write is repeated only after a definite no. After OutcomeUnknown the account is searched first.
"""

from typing import Any

from fleet.reasons import Reason
from panel.core.errors import ExternalError


class ProviderError(ExternalError):
    """A call to a provider failed.

    reason: typed, for the state and the sentence. message: the provider's own words, cleaned of secrets, for people.
    raw_code: the provider's code as it came.
    """

    reason: Reason = Reason.PROVIDER_DOWN
    is_definite = True

    def __init__(
        self,
        message: str,
        *,
        reason: Reason | None = None,
        raw_code: str = "",
        permanent: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.reason = reason or self.reason
        self.raw_code = raw_code
        super().__init__(message, code=str(self.reason), permanent=permanent, retry_after_seconds=retry_after_seconds)

    def facts(self) -> dict[str, Any]:
        """Return the error as it is stored: {reason, message, raw_code}."""
        return {"reason": str(self.reason), "message": self.message[:500], "raw_code": self.raw_code[:100]}


class AccessRefused(ProviderError):
    """The key is wrong, expired, or may not do this (reason PERMISSION_MISSING)."""

    reason = Reason.AUTH_FAILED

    def __init__(self, message: str, *, reason: Reason | None = None, raw_code: str = "") -> None:
        super().__init__(message, reason=reason, raw_code=raw_code, permanent=True)


class Refused(ProviderError):
    """A definite no: nothing was done and nothing is billed."""

    reason = Reason.REQUEST_REFUSED


class Throttled(ProviderError):
    """Asked too often: nothing was done."""

    reason = Reason.RATE_LIMITED


class NotThere(ProviderError):
    """The provider does not know the machine (or offer). When it was to be ended, that is a success."""

    reason = Reason.PROVIDER_DELETED


class Unavailable(ProviderError):
    """The provider does not answer, and nothing was done: a read, or a connection that never came about."""

    reason = Reason.PROVIDER_DOWN


class OutcomeUnknown(ProviderError):
    """A write was sent and no answer came that says what became of it."""

    reason = Reason.OUTCOME_UNKNOWN
    is_definite = False


class NotUnderstood(ProviderError):
    """The answer to a read is not of the form that this version knows."""

    reason = Reason.PROVIDER_ANSWER
