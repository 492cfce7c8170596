"""What an XID means: how bad it is, in one sentence, and what to do next. Codes that are not here are warnings.

Facts from NVIDIA's XID catalogue and from what fleets of such cards treat as fatal; see docs/architecture.md.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from panel.core.enums import Severity

Words = str | Promise


class Step(Enum):
    """The next step after a fault."""

    WATCH = _("Nothing needs doing for this one alone; look at it again if it comes back often.")
    APPLICATION = _(
        "Look at the program that used the card: it did something invalid. Start it again once that is fixed."
    )
    RESTART = _(
        "Start the program that used the card again. If it comes back with other programs, ask for another card."
    )
    RESET = _("Drain the card and reset it (nvidia-smi --gpu-reset); reboot the server if the reset is refused.")
    RESET_LATER = _("The card goes on working. Reset it at the next drain, so that the spare row takes over.")
    REBOOT = _("Reboot the server. If the card does not come back, ask the provider for another one.")
    REPLACE = _("Take the card out of service and ask the provider to replace it.")
    POWER = _("Ask the provider to check the card's power cable and slot.")
    LINK = _(
        "Look at the other cards of the server for link errors; reset the card, and have the bridge or board checked."
    )
    SOFTWARE = _("Update the driver, and report it to the provider if it comes back.")
    REBOOT_GUEST = _("Reboot the virtual machine.")


@dataclass(frozen=True, slots=True)
class FaultMeaning:
    """A fault in words."""

    severity: Severity
    sentence: Words
    step: Step


def _table() -> dict[int, FaultMeaning]:
    info, warning, critical = Severity.INFO, Severity.WARNING, Severity.CRITICAL
    invalid_commands = _("A program sent the card commands that it cannot carry out.")
    copy_engine = _("A copy engine of the card stopped with an error.")
    video_engine = _("A video or image engine of the card stopped with an error.")
    firmware = _("The card's firmware reported an error to the driver.")
    nvlink = _("The NVLink unit of the card reported an error.")
    groups: list[tuple[tuple[int, ...], Severity, Words, Step]] = [
        ((8,), warning, _("The card stopped working on a program and timed out."), Step.RESTART),
        ((11, 25, 32, 69), info, invalid_commands, Step.APPLICATION),
        ((80,), warning, _("Data on its way to the card was corrupted."), Step.RESTART),
        (
            (13,),
            info,
            _("A program made the compute engine fail, mostly by an invalid memory access."),
            Step.APPLICATION,
        ),
        ((31,), info, _("A program touched memory of the card that is not its own."), Step.APPLICATION),
        ((37, 66, 67), info, firmware, Step.WATCH),
        ((38,), warning, firmware, Step.SOFTWARE),
        ((39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)), warning, copy_engine, Step.RESTART),
        (
            (43,),
            info,
            _("A program on the card was stopped after an error of its own; the card is fine."),
            Step.APPLICATION,
        ),
        ((44,), warning, _("The compute engine failed while it changed programs."), Step.WATCH),
        (
            (45,),
            info,
            _("The driver removed a program's work from the card, after an error or at its end."),
            Step.WATCH,
        ),
        ((46,), critical, _("The card stopped working altogether."), Step.RESET),
        ((48,), critical, _("The card's memory had an error that cannot be corrected."), Step.RESET),
        ((54,), critical, _("The card's extra power cable is not connected."), Step.POWER),
        ((60, 65, 68, 73, 82, 83, 84, 86, 88, 89, *range(96, 106), 139, 142), warning, video_engine, Step.RESTART),
        ((62,), critical, _("The card's internal controller stopped."), Step.RESET),
        (
            (63,),
            warning,
            _("A faulty row of memory waits to be replaced by a spare one at the next reset."),
            Step.RESET_LATER,
        ),
        ((64,), critical, _("A faulty row of memory could not be replaced by a spare one."), Step.REPLACE),
        ((74,), critical, _("An NVLink connection of the card failed."), Step.LINK),
        ((78,), warning, _("A virtual GPU could not start."), Step.SOFTWARE),
        ((79,), critical, _("The card fell off the PCI bus: the server no longer reaches it."), Step.REBOOT),
        ((92,), warning, _("The card corrects memory errors unusually often."), Step.WATCH),
        ((93,), info, _("The card's configuration memory was written more often than it is made for."), Step.WATCH),
        (
            (94,),
            warning,
            _("A memory error hit one program and was contained; other programs are not concerned."),
            Step.RESTART,
        ),
        (
            (95,),
            critical,
            _("A memory error could not be contained; every program on the card may be wrong."),
            Step.RESET,
        ),
        ((106, 107), info, _("A test message of the server's management controller."), Step.WATCH),
        ((109,), warning, _("The card took too long to change from one program to another."), Step.RESET),
        ((110,), critical, _("The card's security unit reported a fault."), Step.RESET),
        (
            (119, 120),
            critical,
            _("The card's system processor (GSP) does not answer; tools that ask it may hang."),
            Step.RESET,
        ),
        ((121,), warning, _("The link between processor and card corrected an error."), Step.WATCH),
        ((136,), critical, _("A link of the card could not be trained."), Step.RESET),
        ((108, 137), warning, _("A program reached over NVLink for memory that it may not use."), Step.APPLICATION),
        ((140,), critical, _("A memory error that cannot be corrected went past the card's protection."), Step.RESET),
        ((141, 152, 153, 159), warning, firmware, Step.WATCH),
        ((143,), critical, _("The card could not be initialised."), Step.RESET),
        ((144, 146, 147, 148, 149, 150), warning, nvlink, Step.LINK),
        ((145,), info, _("An NVLink connection had an error that it recovered from."), Step.WATCH),
        ((151,), critical, _("The card could not renew its encryption keys."), Step.REBOOT_GUEST),
        (
            (154,),
            info,
            _("The driver changed what it recommends for this card after another fault; see that one."),
            Step.WATCH,
        ),
        ((155,), critical, _("The driver took an NVLink connection of the card down."), Step.RESET),
        ((156,), critical, _("The card took a faulty part of itself out of use; a reset completes it."), Step.RESET),
        ((157,), warning, _("The card could not take a faulty part of itself out of use."), Step.REPLACE),
        ((158,), critical, _("The card exceeded a time limit that it cannot recover from."), Step.RESET),
        ((160, 161), warning, _("The card took a memory channel out of use."), Step.WATCH),
        ((162, 163, 164), info, _("The card's power smoothing changed its state."), Step.WATCH),
        ((165,), warning, _("The card's power smoothing is worn out."), Step.REPLACE),
        ((166, 170), warning, _("An encrypted NVLink connection saw traffic that it did not expect."), Step.SOFTWARE),
        ((167,), critical, _("The PCI link of the card timed out and did not recover."), Step.REBOOT),
        ((168,), warning, _("The card offers less memory than it should, because part of it is faulty."), Step.REPLACE),
        ((169,), critical, _("The card's internal controller stopped."), Step.RESET),
        ((171, 172), critical, _("The card's memory had an error that cannot be corrected."), Step.RESET),
    ]
    return {code: FaultMeaning(severity, words, step) for codes, severity, words, step in groups for code in codes}


XIDS: Final = _table()
_UNKNOWN_XID: Final = FaultMeaning(
    Severity.WARNING, _("The driver reported a fault that is not in this panel's table."), Step.SOFTWARE
)
_SWITCH: Final = FaultMeaning(Severity.WARNING, _("The NVLink switch of the server reported a fault."), Step.LINK)
# From driver 570 on the NVLink codes say in their text whether they are fatal.
_FATAL: Final = re.compile(r"(?<!non)(?<!non-)(?<!non )fatal", re.IGNORECASE)
_NONFATAL: Final = re.compile(r"non[- ]?fatal", re.IGNORECASE)
_BY_TEXT: Final = frozenset(range(144, 151))


def fault_meaning(kind: str, code: int | None) -> FaultMeaning:
    """Return what a fault means. kind: `xid`, or `sxid` for the switch between the cards."""
    if kind != "xid":
        return _SWITCH
    return XIDS.get(code if code is not None else -1, _UNKNOWN_XID)


def fault_severity(kind: str, code: int | None, message: str) -> Severity:
    """Return how bad a fault is; for NVLink and the switch its text decides where it speaks of fatal or nonfatal."""
    severity = fault_meaning(kind, code).severity
    if kind == "xid" and code not in _BY_TEXT:
        return severity
    if _NONFATAL.search(message):
        return Severity.INFO
    return Severity.CRITICAL if _FATAL.search(message) else severity
