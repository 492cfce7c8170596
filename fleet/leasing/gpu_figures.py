"""What makers state of a model beside its memory: the link to the host, links between cards, board power, error correction.

Entered by hand from what NVIDIA's data sheets and product briefs state. Checked against the maker's own document in December
2026: the 350 W of H100 PCIe alone. Other figures of data centre cards were compared with tables of third parties, those of some
GeForce cards with nothing. H800, A800 and H20 are sold in China alone and have no public data sheet: theirs are taken over from
the boards that they share with H100 and A100, unconfirmed, and left out where that is not certain. Whether ECC is on as shipped
was confirmed for no model.
Power is the most that a board may take (data centre and RTX cards: "max power consumption" or TDP; GeForce: total graphics
power).
None: it differs between editions of the model (A100 PCIe: 250 W with 40 GB, 300 W with 80), can be set (A2), or is not stated.
"""

from dataclasses import dataclass
from typing import Final

from fleet.providers.gpu_models import gpu_model


@dataclass(frozen=True, slots=True)
class Figures:
    """pcie_generation, pcie_width: of the card itself. nvlink_links: between cards of one machine. has_ecc: on as shipped."""

    pcie_generation: int
    pcie_width: int = 16
    power_watts: int | None = None
    nvlink_links: int | None = None
    has_ecc: bool | None = None


# By the name of the model without its memory; one without a form stands for all forms where they agree.
_FIGURES: Final[dict[str, Figures]] = {
    "H200 SXM": Figures(5, power_watts=700, nvlink_links=18, has_ecc=True),
    "H200 NVL": Figures(5, power_watts=600, has_ecc=True),
    "H200": Figures(5, has_ecc=True),
    "H100 SXM": Figures(5, power_watts=700, nvlink_links=18, has_ecc=True),
    "H100 PCIe": Figures(5, power_watts=350, has_ecc=True),
    "H100 NVL": Figures(5, power_watts=400, has_ecc=True),
    "H100": Figures(5, has_ecc=True),
    "H800 SXM": Figures(5, power_watts=700, has_ecc=True),
    "H800": Figures(5, has_ecc=True),
    "H20": Figures(5, has_ecc=True),
    "A100 SXM": Figures(4, power_watts=400, nvlink_links=12, has_ecc=True),
    "A100 PCIe": Figures(4, has_ecc=True),
    "A100": Figures(4, has_ecc=True),
    "A800 SXM": Figures(4, power_watts=400, has_ecc=True),
    "A800": Figures(4, has_ecc=True),
    "V100 SXM": Figures(3, power_watts=300, nvlink_links=6, has_ecc=True),
    "V100 PCIe": Figures(3, power_watts=250, has_ecc=True),
    "V100": Figures(3, has_ecc=True),
    "L40S": Figures(4, power_watts=350, has_ecc=True),
    "L40": Figures(4, power_watts=300, has_ecc=True),
    "L4": Figures(4, power_watts=72, has_ecc=True),
    "A40": Figures(4, power_watts=300),
    "A30": Figures(4, power_watts=165, has_ecc=True),
    "A10": Figures(4, power_watts=150, has_ecc=True),
    "A2": Figures(4, 8, has_ecc=True),
    "T4": Figures(3, power_watts=70, has_ecc=True),
    "RTX 6000 Ada": Figures(4, power_watts=300),
    "A6000": Figures(4, power_watts=300),
    "A5000": Figures(4, power_watts=230),
    "A4000": Figures(4, power_watts=140),
    "RTX 5090": Figures(5, power_watts=575),
    "RTX 5080": Figures(5, power_watts=360),
    "RTX 4090": Figures(4, power_watts=450),
    "RTX 4090 D": Figures(4, power_watts=425),
    "RTX 4080": Figures(4, power_watts=320),
    "RTX 3090 Ti": Figures(4, power_watts=450),
    "RTX 3090": Figures(4, power_watts=350),
    "RTX 2080 Ti": Figures(3),
}


def figures_of(raw: str) -> Figures | None:
    """Return the maker's figures for a model, however it is written; None when there are none here."""
    model = gpu_model(raw)
    if model is None:
        return None
    return _FIGURES.get(model.name.rpartition(" ")[0])
