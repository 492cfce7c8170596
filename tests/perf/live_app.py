"""The panel's own ASGI application with one more topic, `bench.<id>`, that is never held back by an interval."""

from monitoring.live.topics import Topic, register
from panel.asgi import application as application  # noqa: PLC0414  (uvicorn finds it here)

register(Topic("bench", lambda *_: True, lambda _id: {}, interval_seconds=0.0))
