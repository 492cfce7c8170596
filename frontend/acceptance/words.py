"""Words of an acceptance report: what each line is about, where an expectation is from, why something is not proven."""

from collections.abc import Callable, Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.enums import DriverState
from fleet.leasing.acceptance_lines import Kind, Line, Source, Value, Verdict
from frontend import formatting

LABELS: Final[Mapping[str, Promise]] = {
    "cards": gettext_lazy("GPUs found"),
    "gpu_count": gettext_lazy("Number of GPUs"),
    "driver": gettext_lazy("NVIDIA driver"),
    "cuda": gettext_lazy("CUDA that the driver serves"),
    "cpu_model": gettext_lazy("Processor"),
    "cpu_count": gettext_lazy("CPU threads"),
    "host_memory": gettext_lazy("Memory"),
    "disk_kind": gettext_lazy("Kind of disk"),
    "disk_size": gettext_lazy("Size of the disk"),
    "disk_read": gettext_lazy("Sequential read"),
    "panel_round_trip": gettext_lazy("Round trip to the panel"),
    "panel_hops": gettext_lazy("Hops to the panel"),
    "panel_downlink": gettext_lazy("Downlink from the panel"),
    "panel_uplink": gettext_lazy("Uplink to the panel"),
    "target_round_trip": gettext_lazy("Round trip to the chosen address"),
    "target_hops": gettext_lazy("Hops to the chosen address"),
    "target_downlink": gettext_lazy("Downlink from the chosen address"),
    "target_uplink": gettext_lazy("Uplink to the chosen address"),
    "clock_skew": gettext_lazy("Clock is off by"),
    "model": gettext_lazy("Model"),
    "memory": gettext_lazy("VRAM"),
    "pcie_generation": gettext_lazy("PCIe generation"),
    "pcie_width": gettext_lazy("PCIe lanes"),
    "nvlink": gettext_lazy("NVLink links that are up"),
    "power_default": gettext_lazy("Power limit as shipped"),
    "power_enforced": gettext_lazy("Power limit in force"),
    "persistence": gettext_lazy("Persistence mode"),
    "ecc": gettext_lazy("Error correction (ECC)"),
    "remapped_rows": gettext_lazy("Memory rows are sound"),
    "copy_rate": gettext_lazy("Copy from memory to the card"),
    "steadiness": gettext_lazy("Spread of repeated copies"),
}
SOURCES: Final[Mapping[Source, Promise]] = {
    Source.TYPED: gettext_lazy("typed in"),
    Source.LEASE: gettext_lazy("lease"),
    Source.TABLE: gettext_lazy("GPU model"),
    Source.MAKER: gettext_lazy("usual for this model"),
    Source.CARD: gettext_lazy("the card’s own default"),
    Source.RULE: gettext_lazy("limit of this check"),
}
VERDICTS: Final[Mapping[Verdict, Promise]] = {
    Verdict.PASS: gettext_lazy("Pass"),
    Verdict.FAIL: gettext_lazy("Fail"),
    Verdict.NOT_PROVEN: gettext_lazy("Not proven"),
    Verdict.NOTED: gettext_lazy("Noted"),
}
OVERALL: Final[Mapping[Verdict, Promise]] = {
    Verdict.PASS: gettext_lazy("It is what was ordered, as far as was measured."),
    Verdict.FAIL: gettext_lazy("It is not what was ordered."),
    Verdict.NOT_PROVEN: gettext_lazy("Nothing was found wrong, but not everything could be measured."),
}
REASONS: Final[Mapping[str, Promise]] = {
    "not_measured": gettext_lazy("not measured"),
    "link_idle": gettext_lazy("the link rests, and no load could be made"),
    "no_cuda": gettext_lazy("no CUDA library on this machine"),
    "cuda_too_old": gettext_lazy("the CUDA library is too old"),
    "no_cuda_device": gettext_lazy("CUDA does not offer this card"),
    "busy": gettext_lazy("somebody works on the card"),
    "between": gettext_lazy("between good and bad: repeat it on an idle machine"),
    "cached": gettext_lazy("the cache could not be kept out"),
    "virtual": gettext_lazy("a virtual disk: what lies below it is not told"),
    "in_container": gettext_lazy("not visible from inside a container"),
    "not_known": gettext_lazy("the system does not tell"),
    "no_space": gettext_lazy("too little free space for the test file"),
    "proxied": gettext_lazy("a proxy stands between"),
    "unreachable": gettext_lazy("not reachable"),
    "not_found": gettext_lazy("the name is not known there"),
    "not_allowed": gettext_lazy("the machine’s policy forbids this address"),
    "not_an_address": gettext_lazy("not an address"),
    "not_taken": gettext_lazy("the address takes no uploads"),
    "not_asked": gettext_lazy("needs an http(s) address"),
    "too_far": gettext_lazy("more than 32 hops, or not told"),
    "too_slow": gettext_lazy("too slow to measure in time"),
    "out_of_time": gettext_lazy("the time of the check was over"),
    "failed": gettext_lazy("the measurement failed"),
    "no_version": gettext_lazy("what is expected is no version"),
}
STEPS: Final[Mapping[str, Promise]] = {
    "host": gettext_lazy("Looking at the machine"),
    "cards": gettext_lazy("Reading the GPUs"),
    "copy": gettext_lazy("Copying to the GPUs"),
    "disk": gettext_lazy("Reading from the disk"),
    "panel": gettext_lazy("Measuring the way to the panel"),
    "target": gettext_lazy("Measuring the way to the chosen address"),
}
DISK_KINDS: Final[Mapping[str, Promise]] = {
    "nvme": gettext_lazy("NVMe"),
    "ssd": gettext_lazy("SSD"),
    "rotational": gettext_lazy("rotating disk"),
    "virtual": gettext_lazy("virtual disk"),
    "network": gettext_lazy("network file system"),
    "memory": gettext_lazy("memory"),
}


def reason_text(reason: str) -> str:
    """Return why a line is not proven; a code that is not listed stays as it is."""
    if reason in REASONS:
        return str(REASONS[reason])
    if reason in formatting.MISSING_REASONS:
        return formatting.missing_reason(reason)
    return str(DriverState(reason).label) if reason in DriverState.values else reason.replace("_", " ")


def _milliseconds(value: float) -> str:
    return f"{value:,.1f} ms" if value < 100 else formatting.with_unit(value, "latency")


_NUMBERS: Final[Mapping[Kind, Callable[[float], str]]] = {
    "bytes": lambda value: formatting.with_unit(value, "gib"),
    "bytes_per_second": lambda value: formatting.with_unit(value, "mb_per_second"),
    "watts": lambda value: formatting.with_unit(value, "watts"),
    "share": lambda value: f"{value * 100:.1f}%",
    "width": lambda value: f"×{value:.0f}",
    "ms": _milliseconds,
}


def value_text(line: Line, value: Value | None) -> str:
    """Return one of a line's two values with its unit; empty when there is none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, str):
        return str(DISK_KINDS.get(value, value)) if line.code == "disk_kind" else value
    write = _NUMBERS.get(line.kind)
    return write(value) if write is not None else f"{value:g}"


def tolerance_text(line: Line) -> str:
    """Return what may be missing of what is expected, empty for nothing."""
    return "" if line.tolerance is None else f"±{line.tolerance * 100:.0f}%"
