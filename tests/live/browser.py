"""A browser's WebSocket in tests: the ASGI messages themselves (channels.testing needs daphne)."""

import json

from asgiref.testing import ApplicationCommunicator


class Browser:
    """One socket of `application`, with `scope` filled as the handshake would."""

    def __init__(self, application, **scope):
        self.scope = {"type": "websocket", "path": "/ws/live/", "headers": [], "subprotocols": [], **scope}
        self._app = ApplicationCommunicator(application, self.scope)

    async def connect(self):
        await self._app.send_input({"type": "websocket.connect"})
        assert (await self._app.receive_output(5))["type"] == "websocket.accept"

    async def send_text(self, text):
        await self._app.send_input({"type": "websocket.receive", "text": text})

    async def say(self, **message):
        await self.send_text(json.dumps(message))

    async def hear(self, seconds=5):
        output = await self._app.receive_output(seconds)
        assert output["type"] == "websocket.send", output
        return json.loads(output["text"])

    async def hear_closing(self, seconds=5):
        output = await self._app.receive_output(seconds)
        assert output["type"] == "websocket.close", output
        return output["code"]

    async def close(self):
        await self._app.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._app.wait(2)
