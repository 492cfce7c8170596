"""Chats and a webhook's receiver on loopback: they check what the real ones check, and answer errors inside HTTP 200."""

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

DINGTALK_TOKEN = "d" * 32
DINGTALK_SECRET = "SEC" + "5" * 30
WECOM_KEY = "11111111-2222-3333-4444-555555555555"
FEISHU_HOOK = "ffffffff-eeee-dddd-cccc-bbbbbbbbbbbb"
FEISHU_SECRET = "feishu-secret-0123456789"
SLACK_PATH = "T0000/B0000/" + "x" * 24
WEBHOOK_SECRET = "whsec_" + base64.b64encode(b"w" * 32).decode()


class Chats:
    """What came in by kind, and how often at most. slow: seconds before an answer; drip: answers byte by byte."""

    def __init__(self):
        self.got, self.lock = [], threading.Lock()
        self.statuses, self.redirect, self.drip = {}, "", False
        self.limit_per_minute = 20
        self.seen_ids = {}

    def count(self, kind):
        """How many were accepted."""
        return sum(1 for each, _body in self.got if each == kind)

    def answer(self, path, query, headers, body):
        """Return (status, JSON or text) as the service behind this path would."""
        kind = path.strip("/").split("/")[0]
        if kind in self.statuses:
            return self.statuses[kind]
        told = json.loads(body)
        handler = {
            "robot": self._dingtalk,
            "cgi-bin": self._wecom,
            "open-apis": self._feishu,
            "services": self._slack,
        }.get(kind)
        if handler is None:
            return self._webhook(headers, body)
        return handler(path, query, told, len(body))

    def _take(self, kind, body):
        with self.lock:
            self.got.append((kind, body))

    def _dingtalk(self, path, query, told, size):
        if query.get("access_token") != [DINGTALK_TOKEN]:
            return 200, {"errcode": 300005, "errmsg": "token is not exist"}
        stamp = query.get("timestamp", ["0"])[0]
        wanted = base64.b64encode(
            hmac.new(DINGTALK_SECRET.encode(), f"{stamp}\n{DINGTALK_SECRET}".encode(), hashlib.sha256).digest()
        ).decode()
        if abs(int(stamp) / 1000 - time.time()) > 3600 or query.get("sign") != [wanted]:
            return 200, {"errcode": 310000, "errmsg": "sign not match"}
        if size > 20_000:
            return 200, {"errcode": 460101, "errmsg": "message too long"}
        if self.count("dingtalk") >= self.limit_per_minute:
            return 200, {"errcode": 130101, "errmsg": "send too fast"}
        self._take("dingtalk", told)
        return 200, {"errcode": 0, "errmsg": "ok"}

    def _wecom(self, path, query, told, size):
        if query.get("key") != [WECOM_KEY]:
            return 200, {"errcode": 93000, "errmsg": "invalid webhook url"}
        content = told[told["msgtype"]]["content"]
        if len(content.encode()) > {"text": 2048, "markdown": 4096}[told["msgtype"]]:
            return 200, {"errcode": 40058, "errmsg": "content exceed max length"}
        self._take("wecom", told)
        return 200, {"errcode": 0, "errmsg": "ok"}

    def _feishu(self, path, query, told, size):
        if not path.endswith(FEISHU_HOOK):
            return 200, {"code": 19001, "msg": "param invalid: incoming webhook access token invalid"}
        key = f"{told.get('timestamp')}\n{FEISHU_SECRET}".encode()
        if told.get("sign") != base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode():
            return 200, {"code": 19021, "msg": "sign match fail or timestamp is not within one hour from current time"}
        self._take("feishu", told)
        return 200, {"code": 0, "msg": "success", "data": {}}

    def _slack(self, path, query, told, size):
        if not path.endswith(SLACK_PATH):
            return 404, "no_service"
        if not told.get("text") and not told.get("attachments"):
            return 400, "no_text"
        self._take("slack", told)
        return 200, "ok"

    def _webhook(self, headers, body):
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(WEBHOOK_SECRET.removeprefix("whsec_"))
        wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        if wanted not in headers["webhook-signature"].split(" "):
            return 401, "bad signature"
        with self.lock:
            self.seen_ids[headers["webhook-id"]] = self.seen_ids.get(headers["webhook-id"], 0) + 1
        self._take("webhook", json.loads(body))
        return 204, ""


class _Handler(BaseHTTPRequestHandler):
    chats: Chats

    def do_POST(self):
        """Answer as the service would."""
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.chats.redirect:
            self.send_response(302)
            self.send_header("Location", self.chats.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        status, told = self.chats.answer(parts.path, parse_qs(parts.query), self.headers, body)
        raw = told.encode() if isinstance(told, str) else json.dumps(told).encode()
        if self.chats.drip:
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b"H")
                    self.wfile.flush()
                    if self.chats.stopped.wait(0.1):
                        return
            return
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw if status != 204 else b"")

    def log_message(self, *_):
        """Stay quiet."""


@contextlib.contextmanager
def running_chats():
    """Run all of them behind one port; yields (what they got, address)."""
    chats = Chats()
    chats.stopped = threading.Event()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"chats": chats}))
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield chats, f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        chats.stopped.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def secrets_of(kind, base):
    """The secrets of a channel of this kind that reaches these."""
    return {
        "dingtalk": {"url": f"{base}/robot/send?access_token={DINGTALK_TOKEN}", "secret": DINGTALK_SECRET},
        "wecom": {"url": f"{base}/cgi-bin/webhook/send?key={WECOM_KEY}"},
        "feishu": {"url": f"{base}/open-apis/bot/v2/hook/{FEISHU_HOOK}", "secret": FEISHU_SECRET},
        "slack": {"url": f"{base}/services/{SLACK_PATH}"},
        "webhook": {"url": f"{base}/hook", "signing_secret": WEBHOOK_SECRET},
    }[kind]
