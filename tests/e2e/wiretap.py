"""A proxy between an agent and its panel: keeps what was acknowledged, and can break the line in three ways."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import zstandard

from tests.reports import decode_report

HEADERS = ("Authorization", "Content-Type", "Content-Encoding", "Accept", "Fleetdeck-Sent-At-Ms",
           "Fleetdeck-Sent-Monotonic-Ms", "Fleetdeck-Os-Boot-Id")  # fmt: skip


def decode_batch(body):
    """Return the report of a batch as it is spooled and sent."""
    return decode_report(zstandard.ZstdDecompressor().decompress(body))


class Wiretap:
    """Use as a context manager. is_away: answer 503; is_deaf: hand reports on and lose the answers."""

    def __init__(self, panel_url):
        self.acknowledged = []  # reports that the panel answered with 2xx, repeats included
        self.is_away = self.is_deaf = False
        tap = self

        class Handler(_Handler):
            panel = httpx.Client(base_url=panel_url, timeout=10)

        Handler.tap = tap
        self._handler = Handler
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._handler.panel.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tap = panel = None

    def log_message(self, *arguments):
        """Tests keep their own record."""

    def _forward(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.tap.is_away:
            self._answer(503, b"", "text/plain")
            return
        headers = {name: self.headers[name] for name in HEADERS if self.headers[name]}
        answer = self.panel.request(self.command, self.path, headers=headers, content=body)
        if self.path == "/api/agent/v1/report/" and answer.is_success:
            self.tap.acknowledged.append(decode_batch(body))
            if self.tap.is_deaf:
                self.close_connection = True
                return
        self._answer(answer.status_code, answer.content, answer.headers["Content-Type"])

    def _answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _forward  # noqa: N815 (the names that http.server looks for)
