"""A small panel on loopback: stores batches once, answers as told, and can be away."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import zstandard

from fleet.agent import orders, wire
from tests.reports import decode_report


class SmallPanel:
    """Answers the agent's addresses. `answer_with` (status, body, headers) replaces the next answers to reports."""

    def __init__(self, port=0):
        self.reports = []
        self.headers = []
        self.repeated = 0
        self.joins = []
        self.has_left = False
        self.job_reports = []
        self.replica_reports = []
        self.log_chunks = []
        self.is_away = False  # answers 503 to what is said of replicas
        self.job_answers = []  # (status, body) of the next words about jobs; then the state that was told
        self.assignments = wire.Assignments(version=1, sample_interval_seconds=1.0, report_interval_seconds=1.0)
        self.sample_interval_seconds = 1.0
        self.report_interval_seconds = 1.0
        self.needs_facts = False
        self.answer_with = []
        self.is_hanging = threading.Event()
        self._last_seq = {}
        self._lock = threading.Lock()
        panel = self

        class Handler(_Handler):
            pass

        Handler.panel = panel
        self._server = _Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self):
        return self._server.server_address[1]

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def take(self, body, headers):
        """Store a report unless it is stored; returns the answer."""
        report = decode_report(zstandard.ZstdDecompressor().decompress(body))
        with self._lock:
            is_known = report.seq <= self._last_seq.get(report.boot_id, 0)
            if is_known:
                self.repeated += 1
            else:
                self._last_seq[report.boot_id] = report.seq
                self.reports.append(report)
                self.headers.append(headers)
        return wire.ReportAnswer(
            seq=report.seq,
            assignments_version=self.assignments.version,
            sample_interval_seconds=self.sample_interval_seconds,
            report_interval_seconds=self.report_interval_seconds,
            panel_time_ms=time.time_ns() // 1_000_000,
            duplicate=is_known,
            needs_facts=self.needs_facts,
        )

    @property
    def host_samples(self):
        """The wall-clock stamps of all host samples, in the order of their arrival."""
        return [sample.at_ms for report in list(self.reports) for sample in report.host_samples]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *arguments):
        self._connections = set()
        super().__init__(*arguments)

    def process_request(self, request, client_address):
        self._connections.add(request)
        super().process_request(request, client_address)

    def close_connections(self):
        """End kept connections as a panel does that is gone."""
        for connection in self._connections:
            try:
                connection.shutdown(2)
            except OSError:
                continue

    def handle_error(self, request, client_address):
        """Connections that break are what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    panel = None
    wbufsize = -1

    def log_message(self, *arguments):
        pass

    def _send(self, body, status=200, headers=None):
        encoded = body if isinstance(body, bytes) else msgspec.msgpack.encode(body)
        self.send_response(status)
        if not isinstance(body, bytes):
            self.send_header("Content-Type", "application/msgpack")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)
        self.wfile.flush()

    def do_GET(self):
        self._send(self.panel.assignments)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path.endswith("/join/"):
            self._join(body)
        elif "/jobs/" in self.path:
            self._job(body)
        elif self.path in {orders.REPLICAS_PATH, orders.LOGS_PATH}:
            self._replicas(body)
        elif self.path.endswith("/leave/"):
            self.panel.has_left = True
            self._send(b"")
        elif self.panel.answer_with:
            status, answer, headers = self.panel.answer_with.pop(0)
            self._send(answer, status, headers)
        else:
            if self.panel.is_hanging.is_set():
                return
            self._send(self.panel.take(body, dict(self.headers)))

    def _join(self, body):
        request = msgspec.msgpack.decode(body, type=wire.JoinRequest)
        self.panel.joins.append(request)
        if request.token != "fdj_abcdefgh_good":
            self._send(wire.Refusal("token_unknown", "This join token is unknown or used up."), 403)
            return
        self._send(wire.JoinAnswer("fda_abcdefgh_secret", 7, "box", 1.0, 1.0))

    def _replicas(self, body):
        if self.panel.is_away:
            self._send(b"", 503)
            return
        if self.path == orders.REPLICAS_PATH:
            self.panel.replica_reports.append(msgspec.msgpack.decode(body, type=orders.ReplicasReport))
        else:
            self.panel.log_chunks += msgspec.msgpack.decode(body, type=orders.LogsReport).chunks
        self._send(b"")

    def _job(self, body):
        report = msgspec.msgpack.decode(body, type=wire.JobReport)
        status, answer = (
            self.panel.job_answers.pop(0) if self.panel.job_answers else (200, wire.JobAnswer(report.state))
        )
        if status == 200:
            self.panel.job_reports.append((int(self.path.split("/")[-2]), report))
        self._send(answer, status)
