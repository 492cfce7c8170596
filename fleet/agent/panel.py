"""The panel as the agent sees it: its addresses, and what each kind of answer means for what was sent."""

import socket
import ssl
from collections.abc import Mapping
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from fleet.agent import __version__, clock, wire
from fleet.agent.load.order import LOAD_PATH, LoadAnswer, LoadOrder, LoadPiece
from fleet.agent.orders import (
    LOGS_PATH,
    PROBES_PATH,
    REPLICAS_PATH,
    ROUTES_PATH,
    TRAFFIC_PATH,
    LogsReport,
    ProbesReport,
    ReplicasReport,
    Routes,
)
from fleet.agent.probes.result import ProbeResult

MSGPACK: Final = "application/msgpack"
ANSWER_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 5.0
TIMEOUT: Final = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
MAX_ANSWER_BYTES: Final = 1_048_576
# All routes and keys of a large gateway.
MAX_ROUTES_BYTES: Final = 67_108_864
# Batches refused with these, by the panel's own word, will be refused for ever.
NEVER_TAKEN: Final = frozenset({400, 413, 415, 422})
# Words about a job answered with these, by the panel's own word, are not heard later either.
JOB_NEVER_TAKEN: Final = NEVER_TAKEN | {404, 409}
# Refusals with these statuses that are about the moment, or about the agent, and not about the batch.
NOT_THE_BATCH: Final = frozenset({"incomplete", "unsupported_protocol"})

T = TypeVar("T")


class PanelError(Exception):
    """The panel did not do what was asked. Subclasses say what to do about it."""


class UnreachableError(PanelError):
    """No answer, or one that asks to come back later: try again. retry_after_seconds: when, if it said so."""

    def __init__(self, sentence: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_seconds = retry_after_seconds


class RefusedError(PanelError):
    """This request will never be taken as it is."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(f"{sentence} ({status} {code})")
        self.status = status
        self.code = code


class TokenRefusedError(PanelError):
    """The panel does not know this agent any more."""


class PanelClient:
    """Speaks to one panel with one agent's token. Keeps its connection; not for several threads at once.

    ca_file: certificates to trust instead of the usual ones.
    """

    def __init__(
        self, panel_url: str, token: str, ca_file: str = "", transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=panel_url.rstrip("/"),
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": f"fleetdeck-agent/{__version__}",
                "Accept": MSGPACK,
            },
            timeout=TIMEOUT,
            limits=httpx.Limits(max_connections=2, keepalive_expiry=90.0),
            verify=verify_with(panel_url, ca_file),
            transport=transport,
        )

    def report(self, body: bytes) -> wire.ReportAnswer:
        """Send one batch, zstd-compressed. Raises PanelError."""
        at = clock.now()
        headers = {
            "Content-Type": wire.CONTENT_TYPE,
            "Content-Encoding": "zstd",
            wire.HEADER_SENT_AT_MS: str(at.at_ms),
            wire.HEADER_SENT_MONOTONIC_MS: str(at.monotonic_ms),
            wire.HEADER_OS_BOOT_ID: clock.os_boot_id(),
        }
        return self._ask("POST", "/api/agent/v1/report/", wire.ReportAnswer, headers=headers, content=body)

    def assignments(self, *, wait_seconds: int = 0, have: int | None = None) -> wire.Assignments:
        """Return what should be so on this machine. Raises PanelError.

        wait_seconds: the panel answers only then, or as soon as its version is another one than `have`.
        """
        path = "/api/agent/v1/assignments/"
        if wait_seconds and have is not None:
            path = f"{path}?wait={wait_seconds}&have={have}"
        return self._ask("GET", path, wire.Assignments)

    def job(self, job_id: int, report: wire.JobReport) -> wire.JobAnswer:
        """Say how a job is. Raises PanelError; RefusedError too when there is no such job any more."""
        headers = {"Content-Type": MSGPACK}
        response = self._send(
            "POST",
            f"/api/agent/v1/jobs/{job_id}/",
            headers,
            msgspec.msgpack.encode(report),
            never_taken=JOB_NEVER_TAKEN,
        )
        return _decode(response, wire.JobAnswer)

    def routes(self, *, have: int) -> Routes:
        """Return what changed in a gateway's routes and keys since version `have`, or everything. Raises PanelError."""
        response = self._send("GET", f"{ROUTES_PATH}?have={have}")
        return _decode(response, Routes, MAX_ROUTES_BYTES)

    def traffic(self, body: bytes) -> None:
        """Say what went through the gateway: a TrafficReport in msgpack. Raises PanelError."""
        self._send("POST", TRAFFIC_PATH, {"Content-Type": MSGPACK}, body)

    def replicas(self, report: ReplicasReport) -> None:
        """Say how the replicas of this machine are. Raises PanelError."""
        self._send("POST", REPLICAS_PATH, {"Content-Type": MSGPACK}, msgspec.msgpack.encode(report))

    def replica_logs(self, report: LogsReport) -> None:
        """Give lines of replicas' logs. Raises PanelError; RefusedError when they will never be taken."""
        self._send("POST", LOGS_PATH, {"Content-Type": MSGPACK}, msgspec.msgpack.encode(report))

    def probes(self, results: list[ProbeResult], *, lost: int) -> None:
        """Tell what was found by probing. Raises PanelError; RefusedError when it will never be taken."""
        report = ProbesReport(results, lost)
        self._send("POST", PROBES_PATH, {"Content-Type": MSGPACK}, msgspec.msgpack.encode(report))

    def load_order(self, part: int) -> LoadOrder:
        """Return what to send for a go-live test. Raises PanelError; RefusedError when it is not wanted any more."""
        response = self._send("GET", f"{LOAD_PATH}{part}/", never_taken=JOB_NEVER_TAKEN)
        return _decode(response, LoadOrder, MAX_ROUTES_BYTES)

    def load_piece(self, piece: LoadPiece) -> LoadAnswer:
        """Tell what happened; the same piece may be told again. Raises PanelError; RefusedError when nobody wants it."""
        body = msgspec.msgpack.encode(piece)
        path = f"{LOAD_PATH}{piece.part}/"
        response = self._send("POST", path, {"Content-Type": MSGPACK}, body, never_taken=JOB_NEVER_TAKEN)
        return _decode(response, LoadAnswer)

    def leave(self) -> None:
        """Say goodbye: the token ends. Raises PanelError."""
        self._send("POST", "/api/agent/v1/leave/")

    def hurry(self, seconds: float) -> None:
        """Wait no longer than this for answers from now on."""
        self._http.timeout = httpx.Timeout(seconds)

    def be_patient(self, seconds: float) -> None:
        """Wait so much longer for answers than usual."""
        self._http.timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS, read=ANSWER_SECONDS + seconds)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> T:
        response = self._send(method, path, headers, content)
        return _decode(response, kind)

    def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        never_taken: frozenset[int] = NEVER_TAKEN,
    ) -> httpx.Response:
        try:
            response = self._http.request(method, path, headers=headers, content=content)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            response = self._send_again(method, path, headers, content)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(_sentence(error)) from error
        if response.is_success:
            return response
        raise _failure(response, never_taken)

    def _send_again(
        self, method: str, path: str, headers: Mapping[str, str] | None, content: bytes | None
    ) -> httpx.Response:
        """Send once more on a new connection: the panel closed the kept one in the moment of sending.

        Every request here may be repeated: batches have names, the others state what is so.
        """
        try:
            return self._http.request(method, path, headers=headers, content=content)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(_sentence(error)) from error


def join(
    panel_url: str, token: str, *, name: str = "", ca_file: str = "", gateway_port: int | None = None
) -> wire.JoinAnswer:
    """Use up a join token; returns the agent's own token, which the panel shows this once. Raises PanelError.

    gateway_port: that this machine is a gateway, and where.
    """
    request = wire.JoinRequest(
        token=token,
        agent_version=__version__,
        hostname=(name or socket.gethostname())[:100],
        capabilities=["nvml", "host", *(["gateway"] if gateway_port is not None else [])],
        gateway_port=gateway_port,
    )
    headers = {"Content-Type": MSGPACK, "Accept": MSGPACK, "User-Agent": f"fleetdeck-agent/{__version__}"}
    with httpx.Client(timeout=TIMEOUT, verify=verify_with(panel_url, ca_file)) as http:
        try:
            response = http.post(
                f"{panel_url.rstrip('/')}/api/agent/v1/join/", content=msgspec.msgpack.encode(request), headers=headers
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UnreachableError(_sentence(error)) from error
    if not response.is_success:
        raise _failure(response)
    return _decode(response, wire.JoinAnswer)


def verify_with(panel_url: str, ca_file: str) -> ssl.SSLContext | bool:
    """Return what httpx shall trust. Without TLS nothing is verified, and no certificates need be loaded (2 MB)."""
    if urlsplit(panel_url).scheme != "https":
        return False
    if ca_file:
        return ssl.create_default_context(cafile=ca_file)
    return True


def _decode(response: httpx.Response, kind: type[T], most_bytes: int = MAX_ANSWER_BYTES) -> T:
    if len(response.content) > most_bytes:
        raise UnreachableError("The answer is too big to come from a panel.")
    decode = msgspec.json.decode if "json" in response.headers.get("Content-Type", "") else msgspec.msgpack.decode
    try:
        return decode(response.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreachableError(f"The answer is not a panel's: {error}.") from error


def _failure(response: httpx.Response, never_taken: frozenset[int] = NEVER_TAKEN) -> PanelError:
    """Return the error that an answer other than 2xx stands for."""
    status = response.status_code
    refusal = _refusal(response)
    sentence = refusal.message if refusal else f"The answer is {status} {response.reason_phrase}."
    if status in {401, 403}:
        return TokenRefusedError(sentence)
    if status == 413 or (refusal and status in never_taken and refusal.code not in NOT_THE_BATCH):
        return RefusedError(status, refusal.code if refusal else "", sentence)
    return UnreachableError(sentence, _retry_after(response))


def _refusal(response: httpx.Response) -> wire.Refusal | None:
    """Return the panel's own words, None when something else answered (a proxy, another server)."""
    try:
        return _decode(response, wire.Refusal)
    except UnreachableError:
        return None


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return min(float(value), 3600.0) if value.isdigit() else None


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")[:300]
