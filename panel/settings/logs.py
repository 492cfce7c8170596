"""How every process logs: structlog, one line an event, as text or as JSON, secrets taken out."""

from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

# Libraries that tell more than anybody wants to read; their warnings stay.
QUIET_LOGGERS: Final = (
    "httpx",
    "httpcore",
    "celery.app.trace",
    "celery.worker.strategy",
    "celery.beat",
    "uvicorn.access",
)


def redact_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Hide what must not be logged, by key and by shape (panel/core/redaction.py)."""
    from panel.core.redaction import redact

    hidden: EventDict = redact(event)
    return hidden


def shared_processors() -> list[Processor]:
    """Return the steps for structlog's own events and for those of the standard library alike."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def configure_structlog() -> None:
    """Send structlog's events through the standard library's handlers, so that there is one way out."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def logging_config(*, level: str, as_json: bool) -> dict[str, Any]:
    """Return Django's LOGGING: everything to standard error at `level`, as JSON or as text."""
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
        )
    )
    last = [structlog.processors.format_exc_info, redact_secrets, renderer]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
                "foreign_pre_chain": shared_processors(),
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            **{name: {"level": "WARNING"} for name in QUIET_LOGGERS},
        },
    }
