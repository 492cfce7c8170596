"""Why a card's clocks are where they are: NVML's bit mask in words."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# 0x8 is the umbrella of 0x40 and 0x80: it is said only when neither of them is.
HARDWARE_SLOWDOWN: Final = 0x8
_DETAILS_OF_SLOWDOWN: Final = 0x40 | 0x80
CLOCK_REASONS: Final[dict[int, str | Promise]] = {
    0x1: _("idle"),
    0x2: _("set clocks"),
    0x4: _("power limit"),
    HARDWARE_SLOWDOWN: _("hardware slowdown"),
    0x10: _("held with its group"),
    0x20: _("heat (driver)"),
    0x40: _("heat (hardware)"),
    0x80: _("power brake"),
    0x100: _("display clocks"),
    0x200: _("board limit"),
    0x400: _("voltage reliability"),
}


def reasons_in_words(mask: int | None) -> list[str]:
    """Return the reasons of a mask, in the language in force; a bit that is not known is shown as its number."""
    if not mask:
        return []
    shown = mask & ~HARDWARE_SLOWDOWN if mask & _DETAILS_OF_SLOWDOWN else mask
    words = [str(word) for bit, word in CLOCK_REASONS.items() if shown & bit]
    unknown = shown & ~sum(CLOCK_REASONS)
    return [*words, f"0x{unknown:x}"] if unknown else words
