"""The parts of a check: disk, way to an address, copies, clock, and who may be connected to."""

import ctypes
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from fleet.agent.acceptance import cuda as cuda_module
from fleet.agent.acceptance import disk, network, route, speed
from fleet.agent.acceptance.cards import copy_cards, is_busy
from fleet.agent.acceptance.cuda import Cuda, CudaError, summary
from fleet.agent.acceptance.found import CardFound
from fleet.agent.jobs.task import Task
from fleet.agent.lanes import Lanes
from fleet.agent.nvml.card import GpuReading
from fleet.agent.nvml.session import Session
from fleet.agent.wire import GpuProcess, GpuSample

UUID = "01234567-89ab-cdef-0123-456789abcdef"


# ---- disk


def test_a_disk_is_read_past_the_cache_and_nothing_is_left_behind(tmp_path):
    found = disk.read_disk(tmp_path, file_bytes=8 << 20)
    assert found.bytes_read == 8 << 20
    assert found.read_bytes_per_second > 0
    assert found.method in {"direct", "dropped", "cached"}
    assert found.total_bytes > 0
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_costs_only_the_speed(tmp_path):
    gone = tmp_path / "gone"
    found = disk.read_disk(gone)
    assert found.missing["read"] == "no_permission"


def test_a_full_disk_is_left_alone(tmp_path, monkeypatch):
    class Full:
        f_blocks, f_frsize, f_bavail = 1000, 4096, 10

    monkeypatch.setattr(disk.os, "statvfs", lambda _: Full)
    found = disk.read_disk(tmp_path)
    assert (found.missing["read"], found.read_bytes_per_second) == ("no_space", None)


@pytest.mark.parametrize(
    ("filesystem", "kind", "reason"),
    [("nfs4", "network", ""), ("tmpfs", "memory", ""), ("fuse.s3fs", "network", ""), ("overlay", "", "in_container"),
     ("ext4", "", "not_known")],
)  # fmt: skip
def test_file_systems_without_a_block_device(tmp_path, filesystem, kind, reason):
    assert disk.disk_kind(filesystem, "0:42", tmp_path) == (kind, reason)


@pytest.mark.parametrize(
    ("name", "rotational", "kind"),
    [("nvme0n1", "0", "nvme"), ("sda", "1", "rotational"), ("sdb", "0", "ssd"), ("vda", "1", "virtual")],
)
def test_block_devices_are_told_apart_by_partition_too(tmp_path, name, rotational, kind):
    block = tmp_path / "devices" / name
    (block / "queue").mkdir(parents=True)
    (block / "queue/rotational").write_text(f"{rotational}\n")
    partition = block / f"{name}p1"
    partition.mkdir()
    (partition / "partition").write_text("1\n")
    (tmp_path / "8:0").symlink_to(block)
    (tmp_path / "8:1").symlink_to(partition)
    assert disk.disk_kind("ext4", "8:0", tmp_path) == (kind, "")
    assert disk.disk_kind("ext4", "8:1", tmp_path) == (kind, "")


# ---- the way to an address


@pytest.mark.parametrize(
    ("address", "is_allowed", "is_allowed_privately"),
    [
        ("93.184.216.34", True, True),
        ("10.0.0.7", False, True),
        ("127.0.0.1", False, True),
        ("169.254.169.254", False, False),
        ("100.100.100.200", False, False),
        ("fd00:ec2::254", False, False),
        ("fe80::1", False, False),
        ("::ffff:169.254.169.254", False, False),
        ("::ffff:10.0.0.7", False, True),
        ("0.0.0.0", False, False),
        ("224.0.0.1", False, False),
        ("2606:4700::1111", True, True),
    ],
)
def test_a_check_is_sent_to_no_secret_of_a_cloud(address, is_allowed, is_allowed_privately):
    assert route.is_allowed(address, allow_private=False) is is_allowed
    assert route.is_allowed(address, allow_private=True) is is_allowed_privately


@pytest.fixture
def server():
    """A web server on loopback: 3 MB to fetch, uploads taken at /up only."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        hosts = []

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.hosts.append(self.headers["Host"])
            body = b"x" * 3_000_000
            self.send_response(302 if self.path == "/elsewhere" else 200)
            self.send_header("Location", "http://169.254.169.254/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204 if self.path == "/up" else 405)
            self.send_header("Content-Length", "0")
            self.end_headers()

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    running = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://localhost:{running.server_address[1]}", Handler.hosts
    running.shutdown()
    running.server_close()


def a_task(**kwargs):
    given = {
        "job_id": 1, "kind": "acceptance", "arguments": {}, "seconds": 60.0, "panel_url": "http://127.0.0.1:9",
        "agent_token": "fda_x_y", "ca_file": "", "directory": "/", "allow_private_targets": True,
    }  # fmt: skip
    return Task(**(given | kwargs))


def test_the_way_to_an_address_is_measured_both_ways(server, monkeypatch):
    monkeypatch.setattr(speed, "SECONDS", 0.5)
    url, hosts = server
    found = network.measure_target(a_task(), f"{url}/up")
    assert found.missing == {}
    assert (found.host, found.hops) == ("localhost", 1)
    assert found.round_trip_ms > 0
    assert found.downlink_bytes == 3_000_000
    assert found.uplink_bytes_per_second > 0
    assert hosts == [url.removeprefix("http://")]  # connected by number, asked for by name


def test_an_address_without_uploads_and_redirects_is_told_so(server, monkeypatch):
    monkeypatch.setattr(speed, "SECONDS", 0.5)
    url, _hosts = server
    assert network.measure_target(a_task(), f"{url}/").missing["uplink"] == "not_taken"
    assert network.measure_target(a_task(), f"{url}/elsewhere").missing["downlink"] == "answer_302"


def test_private_addresses_need_the_policys_word(server):
    found = network.measure_target(a_task(allow_private_targets=False), server[0])
    assert found.missing["round_trip"] == "not_allowed"
    assert found.downlink_bytes is None


def test_a_host_alone_has_a_round_trip_and_no_speed(server):
    host = server[0].removeprefix("http://")
    found = network.measure_target(a_task(), host)
    assert found.round_trip_ms is not None
    assert found.missing == {"downlink": "not_asked", "uplink": "not_asked"}


@pytest.mark.parametrize("target", ["[::1", "host:port", "example.invalid:1"])
def test_what_is_no_address_is_missing_with_its_reason(target):
    assert "round_trip" in network.measure_target(a_task(), target).missing


def test_the_number_of_hops_is_where_connections_begin_to_succeed(monkeypatch):
    asked = []

    def connects(_address, _port, _seconds, *, hops=None):
        asked.append(hops)
        return hops >= 11

    monkeypatch.setattr(route, "_connects", connects)
    assert route.hops("192.0.2.1", 443, usual_ms=1.0) == 11
    assert len(asked) <= 6
    monkeypatch.setattr(route, "_connects", lambda *_, **__: False)
    with pytest.raises(route.RouteError, match="too_far"):
        route.hops("192.0.2.1", 443, usual_ms=1.0)


def test_nobody_listening_is_unreachable():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(route.RouteError, match="unreachable"):
            route.round_trip_ms("127.0.0.1", taken.getsockname()[1])


class Clocked:
    """A client whose exchanges take as long as told; the panel's clock is right, ours is 50 ms ahead."""

    def __init__(self, monkeypatch, *took):
        self._took, self._now = list(took), 1000.0
        monkeypatch.setattr(speed.time, "time", lambda: self._now + 0.05)
        monkeypatch.setattr(speed.time, "perf_counter", lambda: self._now)

    def get(self, _path):
        took = self._took.pop(0)
        told = round((self._now + took * 0.7) * 1000)  # the way back is shorter
        self._now += took
        return httpx.Response(200, headers={speed.PANEL_TIME_HEADER: str(told)})


def test_the_clock_is_compared_with_the_middle_of_the_quickest_exchange(monkeypatch):
    skew, error = speed.clock_skew(Clocked(monkeypatch, 0.9, 0.4, 0.02, 0.3, 0.5))
    assert error == pytest.approx(10.0)
    assert abs(skew - 50.0) <= error


# ---- copies


@pytest.fixture
def copier(cuda, monkeypatch):
    """CUDA of one card, in this process."""
    monkeypatch.setenv("CUDA_UUID", UUID)
    monkeypatch.setattr(cuda_module, "LIBRARY", str(cuda / "libcuda.so.1"))
    monkeypatch.setattr(cuda_module, "COPY_BYTES", 4 << 20)
    monkeypatch.setattr(cuda_module, "ROUND_SECONDS", 0.02)
    return ctypes.CDLL(str(cuda / "libcuda.so.1"))


def test_copies_are_counted_in_rounds_and_everything_is_given_back(copier):
    library = Cuda()
    assert library.devices() == {f"GPU-{UUID}": 0}
    found = library.copy(0, 0.3)
    assert found.rounds >= 5
    assert found.lowest_bytes_per_second <= found.mean_bytes_per_second
    assert found.variation >= 0
    assert copier.fake_contexts() == 0


def test_a_failing_copy_gives_back_what_it_had(copier, monkeypatch):
    monkeypatch.setenv("CUDA_FAILS", "cuMemAlloc_v2")
    with pytest.raises(CudaError, match="cuda_error_2"):
        Cuda().copy(0, 0.1)
    assert copier.fake_contexts() == 0


@pytest.mark.parametrize("trouble", ["no library", "it refuses"])
def test_without_cuda_every_card_says_why(copier, monkeypatch, trouble):
    if trouble == "no library":
        monkeypatch.setattr(cuda_module, "LIBRARY", "libcuda-that-is-not-here.so.1")
    else:
        monkeypatch.setenv("CUDA_FAILS", "cuInit")
    cards = [CardFound(uuid="GPU-1", is_busy=False)]
    copy_cards(Session("", "", "", []), cards, Lanes(), seconds=0.1, told=lambda _: None)
    assert cards[0].missing["copy"] in {"no_cuda", "cuda_error_999"}
    assert cards[0].copy is None


def test_the_spread_is_the_deviation_by_the_mean():
    found = summary([90.0, 110.0], 2.0)
    assert (found.mean_bytes_per_second, found.lowest_bytes_per_second) == (100.0, 90.0)
    assert found.variation == pytest.approx(0.1)


def a_look(*, used=0, busy=0, processes=()):
    sample = GpuSample(1, 1, utilization_percent=busy, memory_used_bytes=used)
    return GpuReading("GPU-1", sample=sample, processes=list(processes))


def test_one_busy_look_of_three_is_no_work_but_a_process_or_memory_is():
    idle, spike = a_look(), a_look(busy=100)
    assert not is_busy(idle, [spike, idle, idle])
    assert is_busy(idle, [spike, spike, spike])
    assert is_busy(idle, [a_look(used=40 << 30)] * 3)
    assert is_busy(a_look(processes=[GpuProcess(1, ["compute"])]), [idle])
    assert not is_busy(a_look(processes=[GpuProcess(1, ["graphics"])]), [idle])
