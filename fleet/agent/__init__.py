"""The agent: a Celery worker on each GPU server. Knows nothing of Django."""

__version__ = "0.1.0"
