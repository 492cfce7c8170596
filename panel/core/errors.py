"""The tree of expected errors. Each has a code for programs and a sentence for people.

FleetdeckError
├── InvalidInput        400  what was sent cannot be used
├── NotAuthenticated    401  who is asking is unknown
├── PermissionRefused   403  known, but not allowed
├── NotFound            404
├── Conflict            409  the state does not allow it
│   └── Stale           409  somebody else changed it first
├── TooLarge            413
├── RateLimited         429  with retry_after_seconds
├── ExternalError       502  an outside service failed; permanent or worth a retry
└── Unavailable         503  a part of the panel is not to be had now; with retry_after_seconds
"""


class FleetdeckError(Exception):
    """An expected error.

    code: stable, snake_case, for programs. message: one sentence for people that names the cause and the next step.
    """

    status = 500
    code = "error"

    def __init__(self, message: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        if code is not None:
            self.code = code


class InvalidInput(FleetdeckError):
    """What was sent cannot be used."""

    status = 400
    code = "invalid_input"


class NotAuthenticated(FleetdeckError):
    """Who is asking is unknown."""

    status = 401
    code = "not_authenticated"


class PermissionRefused(FleetdeckError):
    """Known, but not allowed."""

    status = 403
    code = "permission_denied"


class NotFound(FleetdeckError):
    """There is no such thing, or none that this caller may see."""

    status = 404
    code = "not_found"


class Conflict(FleetdeckError):
    """The present state does not allow it."""

    status = 409
    code = "conflict"


class Stale(Conflict):
    """Somebody else changed it first; read again and retry."""

    code = "stale"


class TooLarge(FleetdeckError):
    """More than the limit in force."""

    status = 413
    code = "too_large"


class RateLimited(FleetdeckError):
    """Too many requests."""

    status = 429
    code = "rate_limited"

    def __init__(self, message: str, *, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ExternalError(FleetdeckError):
    """An outside service failed."""

    status = 502
    code = "external_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        permanent: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.permanent = permanent
        self.retry_after_seconds = retry_after_seconds


class Unavailable(FleetdeckError):
    """A part of the panel that the answer needs is not to be had at the moment."""

    status = 503
    code = "unavailable"

    def __init__(self, message: str, *, code: str | None = None, retry_after_seconds: float) -> None:
        super().__init__(message, code=code)
        self.retry_after_seconds = retry_after_seconds
