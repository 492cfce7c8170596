"""The agent: a Celery worker on each GPU server. Knows nothing of Django."""
