"""The form of an acceptance check: what is expected, in the units of offers and contracts."""

from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from frontend.acceptance.words import DISK_KINDS

GIB: Final = 1024**3
GB: Final = 10**9
# Offers state networks in megabits, disks in megabytes a second.
MEGABIT: Final = 125_000
MEGABYTE: Final = 10**6
# field of the form → (field of Ordered, factor)
_SCALED: Final = {
    "gpu_memory_gib": ("gpu_memory_bytes", GIB),
    "memory_gib": ("memory_bytes", GIB),
    "disk_gb": ("disk_bytes", GB),
    "disk_read_mb": ("disk_read_bytes_per_second", MEGABYTE),
    "downlink_mbit": ("downlink_bytes_per_second", MEGABIT),
    "uplink_mbit": ("uplink_bytes_per_second", MEGABIT),
}


def _whole(label: Any, most: int, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=1, max_value=most, help_text=help_text)


class AcceptanceForm(forms.Form):
    """Everything is optional: what the lease says is expected anyway."""

    gpu_model = forms.CharField(
        label=_("GPU model"), required=False, max_length=64, help_text=_("For example H100 SXM 80GB.")
    )
    gpu_count = _whole(_("Number of GPUs"), 64)
    gpu_memory_gib = _whole(_("VRAM of each, GiB"), 4096)
    cpu_count = _whole(_("CPU threads"), 4096)
    memory_gib = _whole(_("Memory, GiB"), 65_536)
    disk_gb = _whole(_("Disk, GB"), 1_000_000)
    disk_kind = forms.ChoiceField(
        label=_("Kind of disk"),
        required=False,
        choices=[("", "—"), *((kind, DISK_KINDS[kind]) for kind in ("nvme", "ssd", "rotational"))],
    )
    disk_read_mb = _whole(_("Sequential read, MB/s"), 100_000)
    pcie_generation = _whole(_("PCIe generation"), 8)
    pcie_width = _whole(_("PCIe lanes"), 32)
    has_nvlink = forms.BooleanField(label=_("NVLink between the cards"), required=False)
    cuda_version = forms.CharField(label=_("CUDA, at least"), required=False, max_length=16)
    driver_version = forms.CharField(label=_("Driver, at least"), required=False, max_length=32)
    downlink_mbit = _whole(_("Downlink, Mbit/s"), 1_000_000)
    uplink_mbit = _whole(_("Uplink, Mbit/s"), 1_000_000)
    round_trip_ms = forms.FloatField(label=_("Round trip at most, ms"), required=False, min_value=0.1, max_value=60_000)
    target = forms.CharField(
        label=_("Measure the way to"),
        required=False,
        max_length=300,
        help_text=_("Where your callers or models are: host, host:port, or an https:// address of a file to fetch."),
    )

    def expected(self) -> dict[str, Any]:
        """Return the fields of Ordered that were filled in, in base units; the form must be valid."""
        found: dict[str, Any] = {}
        for name, value in self.cleaned_data.items():
            if name == "target" or value in {None, "", False}:
                continue
            field, factor = _SCALED.get(name, (name, 1))
            found[field] = value * factor if name in _SCALED else value
        return found
