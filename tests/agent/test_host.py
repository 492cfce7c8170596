"""The machine around the cards: its counters, its limits, its processes."""

import os
import sys

import pytest

from fleet.agent import clock
from fleet.agent.host import cgroup
from fleet.agent.host.container import container_kind
from fleet.agent.host.facts import read_host_facts
from fleet.agent.host.proc import Memory, ProcReader, Traffic
from fleet.agent.host.processes import ProcessDirectory, container_of, has_host_pids
from fleet.agent.host.samples import HostSampler


def put(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MACHINE = {
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n",
    "proc/stat": "cpu  10 1 5 80 4 0 0 0 3 0\ncpu0 10 1 5 80 4 0 0 0 3 0\n",
    "proc/diskstats": (
        "   7       0 loop0 9 0 900 0 9 0 900 0 0 0 0\n"
        " 259       0 nvme0n1 10 0 200 0 5 0 100 0 0 0 0\n"
        " 259       1 nvme0n1p1 10 0 200 0 5 0 100 0 0 0 0\n"
        " 253       0 dm-0 10 0 200 0 5 0 100 0 0 0 0\n"
    ),
    "proc/net/dev": (
        "Inter-|   Receive |  Transmit\n face |bytes packets\n"
        "    lo: 999 0 0 0 0 0 0 0 999 0 0 0 0 0 0 0\n"
        "  eth0: 100 0 0 0 0 0 0 0 50 0 0 0 0 0 0 0\n"
        "docker0: 100 0 0 0 0 0 0 0 50 0 0 0 0 0 0 0\n"
    ),
    "sys/block/nvme0n1/size": "1",
    "sys/block/loop0/size": "1",
    "sys/block/dm-0/size": "1",
    "sys/class/net/lo/type": "772",
    "sys/class/net/eth0/device/vendor": "0x15b3",
    "sys/class/net/docker0/type": "1",
}


def test_memory_in_use_leaves_out_what_the_kernel_can_give_back(tmp_path):
    assert ProcReader(put(tmp_path, MACHINE)).memory() == Memory(600 * 1024, 30 * 1024)


def test_bytes_are_counted_once_where_they_meet_hardware(tmp_path):
    reader = ProcReader(put(tmp_path, MACHINE))
    assert reader.disk() == Traffic(200 * 512, 100 * 512)
    assert reader.network() == Traffic(100, 50)


def test_in_a_container_every_interface_but_the_loopback_counts(tmp_path):
    files = {name: text for name, text in MACHINE.items() if not name.startswith("sys/class/net/eth0")}
    reader = ProcReader(put(tmp_path, files | {"sys/class/net/eth0/type": "1"}))
    assert reader.network() == Traffic(200, 100)


def test_an_interface_that_comes_later_counts_after_a_refresh(tmp_path):
    reader = ProcReader(put(tmp_path, MACHINE))
    put(tmp_path, {"sys/class/net/eth1/device/vendor": "0x15b3"})
    text = MACHINE["proc/net/dev"] + "  eth1: 7 0 0 0 0 0 0 0 8 0 0 0 0 0 0 0\n"
    put(tmp_path, {"proc/net/dev": text})
    assert reader.network() == Traffic(100, 50)
    reader.refresh()
    assert reader.network() == Traffic(107, 58)


def test_cpu_is_the_share_of_time_between_two_samples(tmp_path):
    sampler = HostSampler(ProcReader(put(tmp_path, MACHINE)))
    put(tmp_path, {"proc/stat": "cpu  40 1 5 140 14 0 0 0 9 0\n"})
    sample = sampler.read()
    assert sample.cpu_percent == pytest.approx(30.0), "30 of 100 ticks; guests are in user already"


def test_what_a_machine_hides_is_missing_and_leaves_the_rest(tmp_path):
    sampler = HostSampler(ProcReader(put(tmp_path, {"proc/stat": MACHINE["proc/stat"], "proc/meminfo": "nonsense"})))
    sample = sampler.read()
    assert sample.memory_used_bytes is None
    assert sample.disk_read_bytes is None
    assert sample.load_1m is not None


def test_a_sample_of_this_machine_is_whole_and_has_both_clocks():
    before = clock.now()
    sample = HostSampler().read()
    assert before.at_ms <= sample.at_ms <= clock.now().at_ms
    assert before.monotonic_ms <= sample.monotonic_ms <= clock.now().monotonic_ms
    assert sample.memory_used_bytes > 0
    assert sample.disk_used_bytes > 0
    assert sample.network_receive_bytes is not None
    assert 1 << 20 < sample.agent_memory_bytes < 1 << 34


def test_facts_of_this_machine():
    facts = read_host_facts("rack 7")
    assert facts.hostname == "rack 7"
    assert facts.cpu_count == os.cpu_count()
    assert facts.memory_total_bytes > 1 << 28
    assert facts.os_boot_id == clock.os_boot_id() != ""
    assert facts.python_version == ".".join(map(str, sys.version_info[:3]))
    assert read_host_facts("rack 7") == facts, "facts do not change from reading to reading"


# ---- limits of a container


def test_no_limits_where_there_are_none(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/\n")
    assert cgroup.cpu_limit(tmp_path / "cgroup", own) is None
    assert cgroup.memory_limit_bytes(tmp_path / "cgroup", own) is None


def test_limits_of_the_unified_hierarchy_are_the_tightest_on_the_way_up(tmp_path):
    root = put(
        tmp_path / "cgroup",
        {
            "kubepods/pod1/memory.max": "68719476736",
            "kubepods/pod1/cpu.max": "max 100000",
            "kubepods/pod1/app/memory.max": "max",
            "kubepods/pod1/app/cpu.max": "350000 100000",
        },
    )
    own = tmp_path / "own"
    own.write_text("0::/kubepods/pod1/app\n")
    assert cgroup.memory_limit_bytes(root, own) == 64 << 30
    assert cgroup.cpu_limit(root, own) == 3.5


def test_limits_inside_a_container_are_at_the_root_of_what_it_sees(tmp_path):
    root = put(tmp_path / "cgroup", {"memory.max": "1073741824", "cpu.max": "200000 100000"})
    own = tmp_path / "own"
    own.write_text("0::/../../docker/abc\n")
    assert cgroup.memory_limit_bytes(root, own) == 1 << 30
    assert cgroup.cpu_limit(root, own) == 2.0


def test_limits_of_the_first_version(tmp_path):
    root = put(
        tmp_path / "cgroup",
        {
            "memory/docker/abc/memory.limit_in_bytes": "2147483648",
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "150000",
            "cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000",
        },
    )
    own = tmp_path / "own"
    own.write_text("5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n1:name=systemd:/docker/abc\n")
    assert cgroup.memory_limit_bytes(root, own) == 2 << 30
    assert cgroup.cpu_limit(root, own) == 1.5


def test_no_limit_of_the_first_version_is_a_huge_number_or_minus_one(tmp_path):
    root = put(
        tmp_path / "cgroup",
        {
            "memory/memory.limit_in_bytes": "9223372036854771712",
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
        },
    )
    own = tmp_path / "own"
    own.write_text("4:memory:/\n3:cpu:/\n")
    assert cgroup.memory_limit_bytes(root, own) is None
    assert cgroup.cpu_limit(root, own) is None


@pytest.mark.parametrize(
    ("files", "environment", "kind"),
    [
        ({}, {}, ""),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"container": "lxc"}, "lxc"),
        ({"proc/1/environ": "PATH=/bin\0container=systemd-nspawn\0"}, {}, "systemd-nspawn"),
        ({"proc/1/cgroup": "1:name=systemd:/kubepods/besteffort/pod1\n"}, {}, "kubernetes"),
        ({"proc/1/cgroup": "0::/init.scope\n"}, {}, ""),
    ],
)
def test_kinds_of_containers(tmp_path, files, environment, kind):
    assert container_kind(put(tmp_path, files), environment) == kind


# ---- processes


def test_pids_are_the_host_s_in_the_first_namespace_only(tmp_path):
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026531836]")
    assert has_host_pids(tmp_path) is True
    (tmp_path / "self/ns/pid").unlink()
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026532448]")
    assert has_host_pids(tmp_path) is False
    assert has_host_pids(tmp_path / "absent") is None


def test_a_process_is_described_by_name_user_and_start():
    identity = ProcessDirectory(is_visible=True).describe(os.getpid())
    assert identity.name
    assert identity.user
    assert identity.started_at_ms < clock.now().at_ms


def test_a_pid_that_is_gone_or_cannot_be_looked_up_is_nobody():
    assert ProcessDirectory(is_visible=True).describe(4_194_303) is None
    assert ProcessDirectory(is_visible=False).describe(os.getpid()) is None


def test_names_and_users_stay_here_where_the_machine_s_policy_says_so():
    identity = ProcessDirectory(is_visible=True, is_private=True).describe(os.getpid())
    assert (identity.name, identity.user) == ("", "")
    assert identity.started_at_ms is not None


def test_a_container_is_told_by_the_first_twelve_characters_of_its_id():
    docker = "0::/system.slice/docker-" + "ab" * 32 + ".scope\n"
    assert container_of(docker) == "abababababab"
    assert container_of("0::/user.slice/user-1000.slice\n") == ""
