"""A body without an end fills no disk: Django writes bodies to a file before it looks who sent them."""

import asyncio
import itertools

from panel.asgi import MAX_BODY_BYTES, application

MIB = b"\0" * 1024 * 1024


def test_a_body_that_does_not_end_is_broken_off():
    sent = itertools.count()

    async def receive():
        if next(sent) > 100:
            raise AssertionError("it reads on and on")
        return {"type": "http.request", "body": MIB, "more_body": True}

    async def send(message):
        raise AssertionError(f"nothing is answered: {message}")

    scope = {"type": "http", "method": "POST", "path": "/login/", "headers": [], "query_string": b"", "scheme": "http"}
    asyncio.run(application(scope, receive, send))
    assert next(sent) <= MAX_BODY_BYTES // len(MIB) + 2
