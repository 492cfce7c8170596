"""States and reasons in words: one sentence that says what is so, and the next step where there is one.

The words are lazy: they come out in the language of whoever reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.enums import DriverState, GpuState, ServerState
from fleet.lifecycle import DRIVER_REASON, NOT_LISTED_REASON, REPLACED_REASON, RETIRED_REASON, SILENT_REASON
from panel.core.enums import Severity

Words = str | Promise


@dataclass(frozen=True, slots=True)
class Advice:
    """What is so, and what to do about it (empty when nothing needs doing)."""

    sentence: Words
    next_step: Words = ""
    severity: Severity = Severity.INFO

    def as_text(self) -> dict[str, str]:
        """Return it in the language in force, JSON-ready."""
        return {"sentence": str(self.sentence), "next_step": str(self.next_step), "severity": str(self.severity)}


_WARNING: Final = Severity.WARNING
_CRITICAL: Final = Severity.CRITICAL

DRIVER_ADVICE: Final[Mapping[DriverState, Advice]] = {
    DriverState.UNKNOWN: Advice(_("The agent has not looked at the NVIDIA driver yet.")),
    DriverState.OK: Advice(_("The NVIDIA driver answers.")),
    DriverState.NO_GPU: Advice(
        _("The NVIDIA driver is loaded and finds no GPU."),
        _(
            "Check with lspci that the server shows its cards. If it does not, ask the provider; else look for Xid in dmesg."
        ),
        _WARNING,
    ),
    DriverState.NO_LIBRARY: Advice(
        _("There is no NVIDIA driver library (libnvidia-ml.so.1) on this machine, or not in this container."),
        _(
            "On a GPU server install the NVIDIA driver; start a container with --gpus all. On a machine without a GPU there"
            " is nothing to do."
        ),
        _WARNING,
    ),
    DriverState.NOT_LOADED: Advice(
        _("The NVIDIA library is installed and its kernel module is not loaded."),
        _(
            "Load it with “modprobe nvidia”. If that fails, install the driver again for the running kernel, and reboot."
        ),
        _WARNING,
    ),
    DriverState.VERSION_MISMATCH: Advice(
        _("Driver mismatch: the NVIDIA library was upgraded under the running kernel module, so new programs fail."),
        _(
            "Reboot needed; running programs go on until then. Put the driver's packages on hold, so that it stays the only time."
        ),
        _CRITICAL,
    ),
    DriverState.NO_PERMISSION: Advice(
        _("The agent may not open the NVIDIA devices."),
        _("Let the agent's user read and write /dev/nvidia*, or give the container its devices (--gpus all)."),
        _WARNING,
    ),
    DriverState.NOT_ANSWERING: Advice(
        _("A call to the NVIDIA driver has not returned. The agent goes on reporting the machine itself."),
        _("Look for Xid in dmesg. When the driver stays silent, drain the server and reboot it."),
        _CRITICAL,
    ),
    DriverState.ERROR: Advice(
        _("The NVIDIA driver could not be opened."),
        _(
            "Run nvidia-smi on the server. A container that lost its cards after a systemctl daemon-reload needs a restart."
        ),
        _WARNING,
    ),
}

GPU_ADVICE: Final[Mapping[GpuState, Advice]] = {
    GpuState.OK: Advice(_("The card answers.")),
    GpuState.DEGRADED: Advice(
        _("The card answers in part."), _("Look at what it does not answer, and at its faults."), _WARNING
    ),
    GpuState.LOST: Advice(
        _("The driver has lost the card: it fell off the PCI bus."),
        _("Drain and reboot the server. If the card does not come back, ask the provider for another one."),
        _CRITICAL,
    ),
    GpuState.MISSING: Advice(
        _("The server no longer shows this card."),
        _("Reboot the server. If it was taken out on purpose, let the panel forget it."),
        _CRITICAL,
    ),
    GpuState.UNKNOWN: Advice(_("Nobody knows how the card is."), "", _WARNING),
}

# Why a card is in its state, or why a reading is missing. They finish the sentence after “not available: ”.
REASONS: Final[Mapping[str, Words]] = {
    "not_supported": _("the card does not offer it"),
    "no_permission": _("the agent may not read it"),
    "gpu_lost": _("the card fell off the bus"),
    "reset_required": _("the card must be reset"),
    "not_answering": _("the driver does not answer"),
    "handle_refused": _("the driver refuses to open the card"),
    "mig_mode": _("the card is cut into MIG instances"),
    "unknown_error": _("the driver reports an unknown error"),
    "insufficient_power": _("the card's power cable is not connected"),
    "function_not_found": _("the driver is too old for it"),
    DRIVER_REASON: _("the driver cannot be asked"),
    NOT_LISTED_REASON: _("the agent no longer finds it"),
    SILENT_REASON: _("the server does not report"),
    RETIRED_REASON: _("the server is retired"),
    REPLACED_REASON: _("its machine was replaced"),
}

_GPU_REASON_ADVICE: Final[Mapping[str, Advice]] = {
    "reset_required": Advice(
        _("The card must be reset before it works again."),
        _("Drain the card and run nvidia-smi --gpu-reset on it, or reboot the server."),
        _CRITICAL,
    ),
    "handle_refused": Advice(
        _("The driver refuses to open the card; its neighbours are not concerned."),
        _("Check the permissions of its device file, then reset the card or reboot the server."),
        _WARNING,
    ),
    "not_answering": Advice(
        _("A call to this card has not returned."),
        _("Look for Xid in dmesg; drain and reboot when it stays so."),
        _WARNING,
    ),
    "insufficient_power": Advice(
        _("The card's power cable is not connected."), _("Ask the provider to check it."), _CRITICAL
    ),
    SILENT_REASON: Advice(_("The server does not report, so nobody knows how the card is."), "", _WARNING),
    DRIVER_REASON: Advice(_("The driver cannot be asked, so nobody knows how the card is."), "", _WARNING),
    RETIRED_REASON: Advice(_("The server is retired; this is the card's history.")),
    REPLACED_REASON: Advice(_("Another machine took this one's place; this is the card's history.")),
}

SERVER_ADVICE: Final[Mapping[ServerState, Advice]] = {
    ServerState.PENDING: Advice(_("The server is expected.")),
    ServerState.JOINING: Advice(
        _("The agent has joined and has not reported yet."), _("If this lasts, look at the agent's log on the server.")
    ),
    ServerState.READY: Advice(_("The server reports.")),
    ServerState.DEGRADED: Advice(_("The server reports, and something is wrong with it."), "", _WARNING),
    ServerState.NOT_REPORTING: Advice(
        _("The agent is silent. That says nothing about whether the server runs, or is billed."),
        _("See whether the machine answers, and whether the agent runs and reaches the panel."),
        _WARNING,
    ),
    ServerState.UNREACHABLE: Advice(_("The server does not answer the panel's probe."), "", _WARNING),
    ServerState.DRAINING: Advice(_("The server takes no new work and finishes what it has.")),
    ServerState.MAINTENANCE: Advice(_("Somebody works on the server; it is left alone until that is over.")),
    ServerState.RETIRED: Advice(_("The server has left the fleet; its history stays.")),
}

# NVML's recovery action, the driver's own verdict.
_RECOVERY: Final[Mapping[int, Advice]] = {
    1: Advice(
        _("The driver asks for a reset of the card."), _("Drain the card and run nvidia-smi --gpu-reset."), _CRITICAL
    ),
    2: Advice(_("The driver asks for a reboot of the server."), _("Drain the server and reboot it."), _CRITICAL),
    3: Advice(
        _("The driver asks to drain the card's peers."), _("Stop work that spans this card and others."), _WARNING
    ),
    4: Advice(_("The driver asks to drain the card and reset it."), _("Drain the card, then reset it."), _CRITICAL),
    5: Advice(_("The driver asks to restart the IMEX service."), _("Restart nvidia-imex on the server."), _WARNING),
    6: Advice(_("The driver asks for a reset of the PCI bus."), _("Drain the server and reboot it."), _CRITICAL),
    7: Advice(_("The driver asks for a reboot of the whole system."), _("Drain the server and reboot it."), _CRITICAL),
}

_FLAGS: Final[Mapping[str, Advice]] = {
    "remapped_rows_failure": Advice(
        _("A faulty row of memory could not be replaced by a spare one."),
        _("Take the card out of service and ask the provider to replace it."),
        _CRITICAL,
    ),
    "remapped_rows_pending": Advice(
        _("A faulty row of memory waits to be replaced by a spare one."),
        _("Reset the card at the next drain."),
        _WARNING,
    ),
    "retired_pages_pending": Advice(
        _("A faulty page of memory waits to be taken out of use."), _("Reset the card at the next drain."), _WARNING
    ),
    "ecc_uncorrected_volatile": Advice(
        _("Memory errors that cannot be corrected happened since the driver was loaded."),
        _("Start the programs on the card again; ask for another card if it happens again."),
        _WARNING,
    ),
}


def reason_words(reason: str) -> Words:
    """Return a reason in words; one that is not known stands as it came."""
    return REASONS.get(reason, reason)


def driver_advice(driver_state: str) -> Advice:
    """Return what a server's driver state means and what to do."""
    return DRIVER_ADVICE[DriverState(driver_state)]


def server_advice(state: str) -> Advice:
    """Return what a server's state means."""
    return SERVER_ADVICE[ServerState(state)]


def gpu_advice(state: str, reason: str) -> Advice:
    """Return what a card's state means, by its reason where that says more."""
    if state != GpuState.OK and reason in _GPU_REASON_ADVICE:
        return _GPU_REASON_ADVICE[reason]
    return GPU_ADVICE[GpuState(state)]


def health_advice(health: Mapping[str, Any]) -> list[Advice]:
    """Return what the slow tier's counters and flags ask for, the driver's own verdict first; empty when all is well."""
    found = []
    recovery = _RECOVERY.get(health.get("recovery_action") or 0)
    if recovery is not None:
        found.append(recovery)
    found.extend(advice for name, advice in _FLAGS.items() if health.get(name))
    return found
