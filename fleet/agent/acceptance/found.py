"""What a check found: every figure is optional, and `missing` says why one is not there. A card's units are NVML's.

Bounds stand in the types: the panel holds what an agent sends to them.
"""

from typing import Annotated

from msgspec import Meta, Struct

Code = Annotated[str, Meta(max_length=48)]
Name = Annotated[str, Meta(max_length=100)]
Missing = Annotated[dict[Code, Code], Meta(max_length=64)]


class CopyFound(Struct, omit_defaults=True):
    """A repeated copy from pinned host memory to the card.

    rates: bytes per second of each round of equal length. variation: standard deviation by mean.
    """

    rounds: int
    seconds: float
    mean_bytes_per_second: float
    lowest_bytes_per_second: float
    variation: float


class CardFound(Struct, omit_defaults=True):
    """One card. is_link_loaded: generation and width were read while a copy ran (the highest seen).

    copy: None when there was none, see missing. is_busy: somebody's work was on it.
    """

    uuid: Annotated[str, Meta(max_length=96)]
    index: int | None = None
    name: Name = ""
    state: Annotated[str, Meta(max_length=16)] = "ok"
    is_busy: bool | None = None
    memory_total_bytes: int | None = None
    pcie_generation: int | None = None
    pcie_generation_maximum: int | None = None
    pcie_width: int | None = None
    pcie_width_maximum: int | None = None
    is_link_loaded: bool = False
    nvlink_links: int | None = None
    nvlink_active_links: int | None = None
    power_limit_default_milliwatts: int | None = None
    power_limit_enforced_milliwatts: int | None = None
    power_limit_maximum_milliwatts: int | None = None
    persistence_mode: bool | None = None
    ecc_mode: bool | None = None
    ecc_uncorrected_aggregate: int | None = None
    remapped_rows_correctable: int | None = None
    remapped_rows_uncorrectable: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failure: bool | None = None
    copy: CopyFound | None = None
    missing: Missing = {}


class DiskFound(Struct, omit_defaults=True):
    """The disk below one directory. kind: nvme, ssd, rotational, virtual, network, memory.

    method: how the cache was kept out of the reading: direct (O_DIRECT), dropped (posix_fadvise), cached (it was not).
    """

    directory: Annotated[str, Meta(max_length=300)] = ""
    filesystem: Annotated[str, Meta(max_length=32)] = ""
    kind: Annotated[str, Meta(max_length=16)] = ""
    total_bytes: int | None = None
    read_bytes_per_second: float | None = None
    bytes_read: int | None = None
    method: Annotated[str, Meta(max_length=16)] = ""
    missing: Missing = {}


class RouteFound(Struct, omit_defaults=True):
    """The way to one address. round_trip_ms: the median of several TCP connections. hops: routers on the way and the end."""

    host: Annotated[str, Meta(max_length=255)] = ""
    port: int | None = None
    round_trip_ms: float | None = None
    hops: int | None = None
    downlink_bytes_per_second: float | None = None
    downlink_bytes: int | None = None
    uplink_bytes_per_second: float | None = None
    uplink_bytes: int | None = None
    missing: Missing = {}


class Found(Struct, omit_defaults=True):
    """Everything. clock_skew_ms: this clock minus the panel's, known to within clock_skew_error_ms."""

    at_ms: int
    seconds: float
    agent_version: Annotated[str, Meta(max_length=32)]
    driver_state: Annotated[str, Meta(max_length=20)] = ""
    driver_version: Annotated[str, Meta(max_length=64)] = ""
    cuda_version: Annotated[str, Meta(max_length=32)] = ""
    cpu_model: Name = ""
    cpu_count: int | None = None
    cpu_limit: float | None = None
    memory_total_bytes: int | None = None
    memory_limit_bytes: int | None = None
    container: Annotated[str, Meta(max_length=32)] = ""
    clock_skew_ms: float | None = None
    clock_skew_error_ms: float | None = None
    cards: Annotated[list[CardFound], Meta(max_length=64)] = []
    disk: DiskFound | None = None
    panel: RouteFound | None = None
    target: RouteFound | None = None
    missing: Missing = {}
