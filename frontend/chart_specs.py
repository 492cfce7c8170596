"""Which charts a server's page and a GPU's page have, and what each can show. Titles, metrics, limits; no data."""

from dataclasses import dataclass
from typing import Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from endpoints.traffic_series import COUNTS, IN_FLIGHT, TIMES
from monitoring.metrics import GPU_METRICS, HOST_METRICS

Text = str | Promise
Source = Literal["gpu", "host", "traffic"]
# What scales an axis: a fixed number, the cards' memory, their power limit, their slowdown threshold, or the data alone.
Ceiling = float | Literal["memory", "power", "slowdown"] | None


@dataclass(frozen=True, slots=True)
class Line:
    """One metric as a line. name: in words, when a chart has several; total: a host fact that it is a share of.

    dash: for lines that share a hue, as percentiles of one time do; colour: the hue's place, None for the line's own.
    """

    metric: str
    name: Text = ""
    total: str = ""
    dash: tuple[int, ...] | None = None
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a chart can show: the same metrics for every card, metrics of the host, or an endpoint's traffic.

    adds_up: the sum over cards means something (watts, bytes), so that sentences give it instead of a mean.
    """

    key: str
    label: Text
    lines: tuple[Line, ...]
    source: Source = "gpu"
    floor: float | None = 0
    ceiling: Ceiling = None
    has_threshold: bool = False
    adds_up: bool = False

    @property
    def unit(self) -> str:
        """Return the unit of the values as drawn."""
        return "percent" if any(line.total for line in self.lines) else UNITS[self.source][self.lines[0].metric]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of a page."""

    id: str
    title: Text
    choices: tuple[Choice, ...]


UNITS: Final = {
    "gpu": {metric.name: metric.unit for metric in GPU_METRICS},
    "host": {metric.name: metric.unit for metric in HOST_METRICS},
    "traffic": {
        **dict.fromkeys(COUNTS, "per_second"),
        **dict.fromkeys(TIMES, "milliseconds"),
        IN_FLIGHT: "requests",
    },
}


def _one(metric: str, label: Text, *, floor: float = 0, ceiling: Ceiling = None, has_threshold: bool = False) -> Choice:
    adds_up = UNITS["gpu"][metric] in {"watts", "bytes", "bytes_per_second"}
    return Choice(metric, label, (Line(metric),), "gpu", floor, ceiling, has_threshold, adds_up)


UTILIZATION: Final = Chart(
    "utilization",
    _("Utilisation"),
    (
        _one("utilization_percent", _("GPU utilisation"), ceiling=100),
        _one("sm_activity_percent", _("SM activity"), ceiling=100),
        _one("tensor_activity_percent", _("Tensor core activity"), ceiling=100),
        _one("dram_activity_percent", _("Memory activity"), ceiling=100),
        _one("memory_busy_percent", _("Memory controller"), ceiling=100),
        _one("encoder_percent", _("Video encoder"), ceiling=100),
        _one("decoder_percent", _("Video decoder"), ceiling=100),
    ),
)
MEMORY: Final = Chart("memory", _("VRAM"), (_one("memory_used_bytes", _("VRAM used"), ceiling="memory"),))
TEMPERATURE: Final = Chart(
    "temperature",
    _("Temperature"),
    (
        _one("temperature_celsius", _("GPU temperature"), floor=20, ceiling="slowdown", has_threshold=True),
        _one("memory_temperature_celsius", _("Memory temperature"), floor=20, ceiling="slowdown"),
        _one("fan_percent", _("Fan speed"), ceiling=100),
    ),
)
POWER: Final = Chart(
    "power",
    _("Power"),
    (
        _one("power_watts", _("Power draw"), ceiling="power", has_threshold=True),
        _one("energy_power_watts", _("Power by energy counter"), ceiling="power", has_threshold=True),
        _one("power_capped_percent", _("Time capped by power"), ceiling=100),
    ),
)
CLOCKS: Final = Chart(
    "clocks",
    _("Clocks"),
    (
        _one("sm_clock_mhz", _("SM clock")),
        _one("memory_clock_mhz", _("Memory clock")),
        _one("throttled_percent", _("Time throttled by heat"), ceiling=100),
    ),
)
LINKS: Final = Chart(
    "links",
    _("PCIe and NVLink"),
    (
        _one("pcie_rx_bytes_per_second", _("PCIe received")),
        _one("pcie_tx_bytes_per_second", _("PCIe sent")),
        _one("nvlink_rx_bytes_per_second", _("NVLink received")),
        _one("nvlink_tx_bytes_per_second", _("NVLink sent")),
    ),
)
GPU_LINKS: Final = Chart(
    "links",
    _("PCIe and NVLink"),
    (
        Choice(
            "pcie",
            _("PCIe"),
            (Line("pcie_rx_bytes_per_second", _("Received")), Line("pcie_tx_bytes_per_second", _("Sent"))),
        ),
        Choice(
            "nvlink",
            _("NVLink"),
            (Line("nvlink_rx_bytes_per_second", _("Received")), Line("nvlink_tx_bytes_per_second", _("Sent"))),
        ),
    ),
)
HOST: Final = Chart(
    "host",
    _("CPU and RAM"),
    (
        Choice(
            "share",
            _("CPU and RAM"),
            (Line("cpu_percent", _("CPU")), Line("memory_used_bytes", _("RAM"), total="memory_total_bytes")),
            source="host",
            ceiling=100,
        ),
        Choice("load", _("Load, 1 min"), (Line("load_1m", _("Load")),), source="host"),
        Choice("swap", _("Swap used"), (Line("swap_used_bytes", _("Swap")),), source="host"),
    ),
)
NETWORK: Final = Chart(
    "network",
    _("Network and disk"),
    (
        Choice(
            "network",
            _("Network"),
            (
                Line("network_receive_bytes_per_second", _("Received")),
                Line("network_transmit_bytes_per_second", _("Sent")),
            ),
            source="host",
        ),
        Choice(
            "disk",
            _("Disk"),
            (Line("disk_read_bytes_per_second", _("Read")), Line("disk_write_bytes_per_second", _("Written"))),
            source="host",
        ),
    ),
)

SERVER_CHARTS: Final = (UTILIZATION, MEMORY, TEMPERATURE, POWER, CLOCKS, LINKS, HOST, NETWORK)
GPU_CHARTS: Final = (UTILIZATION, MEMORY, TEMPERATURE, POWER, CLOCKS, GPU_LINKS)
HOST_ONLY_CHARTS: Final = (HOST, NETWORK)


def _percentiles(part: str, label: Text) -> Choice:
    """Return a choice of one part of requests' time: P99 solid, P90 dashed, P50 dotted in one hue, and the slowest."""
    lines = (
        Line(f"{part}_p99_ms", "P99", dash=(), colour=0),
        Line(f"{part}_p90_ms", "P90", dash=(6, 3), colour=0),
        Line(f"{part}_p50_ms", "P50", dash=(2, 2), colour=0),
        Line(f"{part}_max_ms", _("Slowest"), dash=(2, 4), colour=1),
    )
    return Choice(part, label, lines, source="traffic")


TRAFFIC_CHARTS: Final = (
    Chart(
        "requests",
        _("Requests by outcome"),
        (
            Choice(
                "classes",
                _("Requests by outcome"),
                (
                    Line("requests_2xx_per_second", "2xx"),
                    Line("requests_4xx_per_second", "4xx"),
                    Line("requests_5xx_per_second", "5xx"),
                    Line("requests_cut_per_second", _("broken off")),
                    Line("requests_left_per_second", _("caller left")),
                    Line("limited_per_second", _("refused by a limit")),
                ),
                source="traffic",
            ),
            Choice(
                "tokens", _("Tokens of callers with a key"), (Line("tokens_per_second", _("Tokens")),), source="traffic"
            ),
        ),
    ),
    Chart(
        "latency",
        _("Time of requests"),
        (_percentiles("total", _("In all")), _percentiles("first_byte", _("To the first byte"))),
    ),
    Chart("queue", _("Time in the queue"), (_percentiles("queue", _("Time in the queue")),)),
    Chart(
        "in-flight",
        _("Requests under way"),
        (Choice("in_flight", _("Requests under way"), (Line(IN_FLIGHT, _("Under way")),), source="traffic"),),
    ),
)
