"""The panel as a gateway's agent meets it: routes with versions, reports of traffic stored once, and it can be away."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from fleet.agent import wire
from fleet.agent.orders import ROUTES_PATH, TRAFFIC_PATH, Routes, TrafficReport


class GatewayPanel:
    """`routes` and `keys` are what should be served; `say` makes a change known. `reports` are those stored, each once."""

    def __init__(self):
        self.routes = {}
        self.keys = []
        self.version = 0
        self.changes = []  # (version, names, whether keys changed)
        self.reports = []
        self.repeated = 0
        self.is_away = False
        self.order = None  # for a whole agent, which asks for its assignments
        self.orders = 0
        self.loses_answers = False
        self._seen = set()
        self._lock = threading.Lock()
        panel = self

        class Handler(_Handler):
            pass

        Handler.panel = panel
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def say(self, *routes, gone=(), keys=None):
        """Change routes (and keys, when given); returns the new version."""
        with self._lock:
            self.version += 1
            for route in routes:
                self.routes[route.name] = route
            for name in gone:
                del self.routes[name]
            if keys is not None:
                self.keys = keys
            self.changes.append((self.version, {route.name for route in routes} | set(gone), keys is not None))
            return self.version

    def answer(self, have):
        with self._lock:
            if have == 0 or have > self.version:
                return Routes(self.version, is_whole=True, routes=list(self.routes.values()), keys=self.keys)
            names = {name for version, changed, _ in self.changes if version > have for name in changed}
            are_keys_other = any(keys for version, _, keys in self.changes if version > have)
            return Routes(
                self.version,
                is_whole=False,
                routes=[self.routes[name] for name in names if name in self.routes],
                gone=[name for name in names if name not in self.routes],
                keys=self.keys if are_keys_other else None,
            )

    def assignments(self):
        return wire.Assignments(
            version=self.orders, sample_interval_seconds=1.0, report_interval_seconds=1.0, gateway=self.order
        )

    def take(self, body):
        report = msgspec.msgpack.decode(body, type=TrafficReport)
        with self._lock:
            if (report.run_id, report.seq) in self._seen:
                self.repeated += 1
                return
            self._seen.add((report.run_id, report.seq))
            self.reports.append(report)

    def traffic(self, endpoint):
        """All that was reported of one endpoint, in order."""
        with self._lock:
            return [one for report in self.reports for one in report.endpoints if one.endpoint == endpoint]

    def requests(self, endpoint):
        return sum(one.requests for one in self.traffic(endpoint))

    @property
    def last(self):
        return self.reports[-1] if self.reports else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    panel = None

    def log_message(self, *arguments):
        pass

    def _send(self, status, value):
        body = msgspec.msgpack.encode(value) if value is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/msgpack")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        if self.panel.is_away:
            self._send(503, wire.Refusal("away", "Away."))
        elif self.path.startswith(ROUTES_PATH):
            self._send(200, self.panel.answer(int(self.path.split("have=")[1])))
        elif "/assignments/" in self.path:
            self._send(200, self.panel.assignments())
        else:
            self._send(404, None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/report/"):
            # an answer to any batch: this panel is about gateways
            self._send(200, wire.ReportAnswer(1, self.panel.orders, 1.0, 1.0, 0))
            return
        if self.panel.is_away or not self.path.startswith(TRAFFIC_PATH):
            self._send(503, wire.Refusal("away", "Away."))
            return
        self.panel.take(body)
        self._send(503 if self.panel.loses_answers else 200, None)
