"""The lines of one card: is it the model, with all its memory, its whole link, its power, and sound? Pure."""

from dataclasses import replace
from typing import Final

from fleet.agent.acceptance.found import CardFound
from fleet.leasing.acceptance_lines import (
    Expected,
    Line,
    Source,
    Verdict,
    Wishes,
    at_least,
    judged,
    why_missing,
)
from fleet.leasing.gpu_figures import Figures, figures_of
from fleet.providers.gpu_models import GIB, GpuModel, gpu_model, is_same_model

# Error correction takes up to a sixteenth of GDDR memory, the driver some more.
MEMORY_TOLERANCE: Final = 0.08
POWER_TOLERANCE: Final = 0.05
# Bytes per second of one lane in one direction after line coding (PCI Express base specification).
LANE_BYTES_PER_SECOND: Final = {1: 250e6, 2: 500e6, 3: 985e6, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
# Pinned copies reach four fifths and more of what a link can carry; half of it is another link, or a shared one.
COPY_GOOD, COPY_BAD = 0.7, 0.5
# Rounds of an undisturbed card differ by a percent or two; those of one that is shared or throttled by much more.
VARIATION_GOOD, VARIATION_BAD = 0.05, 0.15


def model_of(card: CardFound) -> GpuModel | None:
    """Return the model that a card is, told by its name and memory."""
    size = card.memory_total_bytes / GIB if card.memory_total_bytes else None
    return gpu_model(card.name, size)


def card_lines(card: CardFound, wishes: Wishes, gpu_count: int) -> list[Line]:
    """Return one card's lines. gpu_count: of cards in the machine: a single one has nothing to link to."""
    found = model_of(card)
    ordered = wishes.text("gpu_model")
    figures = figures_of(ordered) if ordered else None
    if figures is None and found is not None:
        figures = figures_of(card.name)
    lines = [
        _model(card, found, wishes),
        _memory(card, found, wishes),
        _generation(card, _wished(wishes, "pcie_generation", figures.pcie_generation if figures else None)),
        at_least(
            "pcie_width",
            "width",
            _wished(wishes, "pcie_width", figures.pcie_width if figures else None),
            card.pcie_width,
            missing=why_missing(card, "pcie_width"),
        ),
        _nvlink(card, wishes, figures, gpu_count),
        *_power(card, wishes, figures),
        judged("persistence", "flag", None, card.persistence_mode, missing=why_missing(card, "persistence_mode")),
        _ecc(card, figures),
        _rows(card),
        *_copy(card, wishes, figures),
    ]
    return [replace(line, subject=card.index) for line in lines]


def _wished(wishes: Wishes, name: str, figure: float | None, source: Source = Source.MAKER) -> Expected | None:
    """Return what somebody asked for, else the figure of the model, else nothing."""
    return wishes.get(name) or (Expected(figure, source) if figure is not None else None)


def _model(card: CardFound, found: GpuModel | None, wishes: Wishes) -> Line:
    expected = wishes.get("gpu_model")
    name = found.name if found is not None else card.name
    is_met = expected is not None and is_same_model(str(expected.value), name)
    return judged("model", "text", expected, name or None, is_met=is_met, missing=why_missing(card, "name"))


def _memory(card: CardFound, found: GpuModel | None, wishes: Wishes) -> Line:
    ordered = gpu_model(wishes.text("gpu_model")) if wishes.text("gpu_model") else found
    expected = _wished(wishes, "gpu_memory_bytes", ordered.memory_bytes if ordered else None, Source.TABLE)
    return at_least(
        "memory",
        "bytes",
        expected,
        card.memory_total_bytes,
        tolerance=MEMORY_TOLERANCE,
        missing=why_missing(card, "memory_total_bytes"),
    )


def _generation(card: CardFound, expected: Expected | None) -> Line:
    """Links rest at a low generation: only under load, or when not even the slot can do more, is a lower one a finding."""
    found = card.pcie_generation
    unclear = ""
    if expected is not None and found is not None and not card.is_link_loaded and found < float(expected.value):
        most = card.pcie_generation_maximum
        if most is not None and most < float(expected.value):
            found = most
        else:
            unclear = "link_idle"
    is_met = expected is not None and found is not None and found >= float(expected.value)
    return judged(
        "pcie_generation",
        "generation",
        expected,
        found,
        is_met=is_met,
        missing=why_missing(card, "pcie_generation"),
        unclear=unclear,
    )


def _nvlink(card: CardFound, wishes: Wishes, figures: Figures | None, gpu_count: int) -> Line:
    wish = wishes.get("has_nvlink")
    links = figures.nvlink_links if figures is not None else None
    expected: Expected | None
    if wish is not None:
        expected = Expected((links or card.nvlink_links or 1) if wish.value else 0, wish.source)
    else:
        expected = Expected(links, Source.MAKER) if links and gpu_count > 1 else None
    found = card.nvlink_active_links
    if found is None and card.missing.get("nvlink_links") == "not_supported":
        found = 0
    return at_least("nvlink", "count", expected, found, missing=why_missing(card, "nvlink_active_links"))


def _power(card: CardFound, wishes: Wishes, figures: Figures | None) -> list[Line]:
    default = _watts(card.power_limit_default_milliwatts)
    enforced = _watts(card.power_limit_enforced_milliwatts)
    own = Expected(default, Source.CARD) if default is not None else None
    return [
        at_least(
            "power_default",
            "watts",
            _wished(wishes, "power_watts", figures.power_watts if figures else None),
            default,
            tolerance=POWER_TOLERANCE,
            missing=why_missing(card, "power_limit_default_milliwatts"),
        ),
        at_least(
            "power_enforced",
            "watts",
            own,
            enforced,
            tolerance=POWER_TOLERANCE,
            missing=why_missing(card, "power_limit_enforced_milliwatts"),
        ),
    ]


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _ecc(card: CardFound, figures: Figures | None) -> Line:
    expected = Expected(value=True, source=Source.MAKER) if figures is not None and figures.has_ecc else None
    return judged(
        "ecc", "flag", expected, card.ecc_mode, is_met=card.ecc_mode is True, missing=why_missing(card, "ecc_mode")
    )


def _rows(card: CardFound) -> Line:
    """Rows that wait to be remapped, or could not be, mean a card that goes back; cards without the feature are noted."""
    flags = (card.remapped_rows_pending, card.remapped_rows_failure)
    known = [flag for flag in flags if flag is not None]
    reason = why_missing(card, "remapped_rows_pending")
    if not known and reason in {"not_supported", "mig_mode"}:
        return Line("remapped_rows", "flag", Verdict.NOTED, reason=reason)
    found = not any(known) if known else None
    return judged(
        "remapped_rows",
        "flag",
        Expected(value=True, source=Source.RULE),
        found,
        is_met=found is True,
        missing=reason,
    )


def link_bytes_per_second(generation: float | None, width: float | None) -> float | None:
    """Return what a link of this generation and width carries in one direction; None when it is not known."""
    lane = LANE_BYTES_PER_SECOND.get(int(generation)) if generation is not None else None
    return lane * width if lane is not None and width is not None else None


def _copy(card: CardFound, wishes: Wishes, figures: Figures | None) -> list[Line]:
    missing = why_missing(card, "copy")
    generation = _wished(
        wishes, "pcie_generation", figures.pcie_generation if figures else card.pcie_generation_maximum
    )
    width = _wished(wishes, "pcie_width", figures.pcie_width if figures else card.pcie_width_maximum)
    link = link_bytes_per_second(float(generation.value) if generation else None, float(width.value) if width else None)
    rate = card.copy.mean_bytes_per_second if card.copy is not None else None
    is_between = rate is not None and link is not None and COPY_BAD * link <= rate < COPY_GOOD * link
    variation = card.copy.variation if card.copy is not None else None
    is_restless = variation is not None and VARIATION_GOOD < variation <= VARIATION_BAD
    return [
        judged(
            "copy_rate",
            "bytes_per_second",
            Expected(link, Source.RULE) if link is not None else None,
            rate,
            is_met=rate is not None and link is not None and rate >= COPY_GOOD * link,
            tolerance=1 - COPY_GOOD,
            missing=missing,
            unclear="between" if is_between else "",
        ),
        judged(
            "steadiness",
            "share",
            Expected(VARIATION_GOOD, Source.RULE),
            variation,
            is_met=variation is not None and variation <= VARIATION_GOOD,
            missing=missing,
            unclear="between" if is_restless else "",
        ),
    ]
