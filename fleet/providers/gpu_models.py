"""GPU models under one name, however a vendor or NVML writes them.

A name is family, form where it matters, memory: `H100 SXM 80GB`. Memory is what the maker states, in GB as it is marketed
(GiB on the card); the enforced figure is NVML's.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model. memory_gib: of one card. maker: nvidia, amd, huawei, cambricon."""

    name: str
    memory_gib: int
    maker: str = "nvidia"

    @property
    def memory_bytes(self) -> int:
        """Return the memory of one card in bytes."""
        return self.memory_gib * GIB


@dataclass(frozen=True, slots=True)
class _Family:
    """One family: a pattern over the cleaned text; its sizes, the usual one first; its forms, the usual one first."""

    name: str
    pattern: str
    sizes: Sequence[int]
    forms: Sequence[str] = ()
    maker: str = "nvidia"


# The first that matches wins, so the longer names stand before those that they contain. Text is upper case, one blank
# between words, other signs gone.
_FAMILIES: Final = (
    _Family("GH200", r"GH ?200", (96, 144)),
    _Family("GB200", r"GB ?200", (186,)),
    _Family("GB300", r"GB ?300", (279,)),
    _Family("B200", r"B ?200", (180,)),
    _Family("B300", r"B ?300", (270,)),
    _Family("H200", r"H ?200", (141,), ("SXM", "NVL")),
    _Family("H100", r"H ?100", (80, 94, 64), ("SXM", "PCIe", "NVL")),
    _Family("H800", r"H ?800", (80,), ("SXM", "PCIe")),
    _Family("H20", r"H ?20", (96, 141)),
    _Family("A100", r"A ?100X?", (80, 40), ("SXM", "PCIe")),
    _Family("A800", r"A ?800", (80, 40), ("SXM", "PCIe")),
    _Family("V100", r"V ?100S?", (16, 32), ("SXM", "PCIe")),
    _Family("K80", r"K ?80", (12,)),
    _Family("P100", r"P ?100", (16,)),
    _Family("RTX PRO 6000", r"(?:RTX )?PRO ?6000(?: ?P)?(?: BLACKWELL)?", (96,)),
    _Family("RTX PRO 5000", r"(?:RTX )?PRO ?5000(?: BLACKWELL)?", (48,)),
    _Family("RTX PRO 4500", r"(?:RTX )?PRO ?4500(?: BLACKWELL)?", (32,)),
    _Family("RTX PRO 4000", r"(?:RTX )?PRO ?4000(?: BLACKWELL)?", (24,)),
    _Family("RTX 6000 Ada", r"(?:RTX )?6000 ?ADA(?: GENERATION)?", (48,)),
    _Family("RTX 5880 Ada", r"(?:RTX )?5880 ?ADA(?: GENERATION)?", (48,)),
    _Family("RTX 5000 Ada", r"(?:RTX )?5000 ?ADA(?: GENERATION)?", (32,)),
    _Family("RTX 4500 Ada", r"(?:RTX )?4500 ?ADA(?: GENERATION)?", (24,)),
    _Family("RTX 4000 Ada", r"(?:RTX )?4000 ?(?:SFF )?ADA(?: GENERATION)?", (20,)),
    _Family("RTX 2000 Ada", r"(?:RTX )?2000 ?ADA(?: GENERATION)?", (16,)),
    _Family("Quadro RTX 6000", r"(?:QUADRO RTX|RTX|Q RTX) ?6000", (24,)),
    _Family("Quadro RTX 8000", r"(?:QUADRO RTX|RTX|Q RTX) ?8000", (48,)),
    _Family("A6000", r"(?:RTX ?)?A ?6000", (48,)),
    _Family("A5000", r"(?:RTX ?)?A ?5000", (24,)),
    _Family("A4500", r"(?:RTX ?)?A ?4500", (20,)),
    _Family("A4000", r"(?:RTX ?)?A ?4000", (16,)),
    _Family("A2000", r"(?:RTX ?)?A ?2000", (12, 6)),
    _Family("L40S", r"L ?40 ?S", (48,)),
    _Family("L40", r"L ?40", (48,)),
    _Family("L20", r"L ?20", (48,)),
    _Family("L4", r"L ?4", (24,)),
    _Family("L2", r"L ?2", (24,)),
    _Family("A40", r"A ?40", (48,)),
    _Family("A30", r"A ?30", (24,)),
    _Family("A16", r"A ?16", (16,)),
    _Family("A10G", r"A ?10 ?G", (24,)),
    _Family("A10", r"A ?10", (24,)),
    _Family("A2", r"A ?2", (16,)),
    _Family("T4", r"T ?4", (16,)),
    _Family("P40", r"P ?40", (24,)),
    _Family("P4", r"P ?4", (8,)),
    _Family("RTX 5090 D", r"(?:RTX ?)?5090 ?D", (32,)),
    _Family("RTX 5090", r"(?:RTX ?)?5090(?: ?P)?", (32,)),
    _Family("RTX 5080", r"(?:RTX ?)?5080", (16,)),
    _Family("RTX 5070 Ti", r"(?:RTX ?)?5070 ?TI", (16,)),
    _Family("RTX 5070", r"(?:RTX ?)?5070", (12,)),
    _Family("RTX 5060 Ti", r"(?:RTX ?)?5060 ?TI", (16, 8)),
    _Family("RTX 4090 D", r"(?:RTX ?)?4090 ?D", (24, 48)),
    _Family("RTX 4090", r"(?:RTX ?)?4090(?: PRO)?", (24, 48)),
    _Family("RTX 4080 SUPER", r"(?:RTX ?)?4080 ?S(?:UPER)?", (16, 32)),
    _Family("RTX 4080", r"(?:RTX ?)?4080", (16,)),
    _Family("RTX 4070 Ti", r"(?:RTX ?)?4070 ?S? ?TI(?: SUPER)?", (12, 16)),
    _Family("RTX 4070 SUPER", r"(?:RTX ?)?4070 ?S(?:UPER)?", (12,)),
    _Family("RTX 4070", r"(?:RTX ?)?4070", (12,)),
    _Family("RTX 4060 Ti", r"(?:RTX ?)?4060 ?TI", (16, 8)),
    _Family("RTX 3090 Ti", r"(?:RTX ?)?3090 ?TI", (24,)),
    _Family("RTX 3090", r"(?:RTX ?)?3090", (24, 48)),
    _Family("RTX 3080 Ti", r"(?:RTX ?)?3080 ?TI", (12,)),
    _Family("RTX 3080", r"(?:RTX ?)?3080", (10, 12, 20)),
    _Family("RTX 3070 Ti", r"(?:RTX ?)?3070 ?TI", (8,)),
    _Family("RTX 3070", r"(?:RTX ?)?3070", (8,)),
    _Family("RTX 3060 Ti", r"(?:RTX ?)?3060 ?TI", (8,)),
    _Family("RTX 3060", r"(?:RTX ?)?3060", (12,)),
    _Family("RTX 2080 Ti", r"(?:RTX ?)?2080 ?TI", (11, 22)),
    _Family("RTX 2080", r"(?:RTX ?)?2080", (8,)),
    _Family("GTX 1080 Ti", r"(?:GTX ?)?1080 ?TI", (11,)),
    _Family("MI300X", r"MI ?300 ?X", (192,), (), "amd"),
    _Family("MI325X", r"MI ?325 ?X", (256,), (), "amd"),
    _Family("MI355X", r"MI ?355 ?X", (288,), (), "amd"),
    _Family("MI250", r"MI ?250 ?X?", (128,), (), "amd"),
    _Family("Ascend 910B", r"(?:ASCEND ?)?910 ?B\d?", (64, 32), (), "huawei"),
    _Family("Ascend 910", r"ASCEND ?910", (32,), (), "huawei"),
    _Family("Ascend 310P", r"(?:ASCEND ?)?310 ?P\d?", (24,), (), "huawei"),
    _Family("MLU370", r"MLU ?370(?: ?[XS]\d)?", (24, 48), (), "cambricon"),
)
_COMPILED: Final = tuple((family, re.compile(rf"(?<![A-Z0-9]){family.pattern}(?![A-Z0-9])")) for family in _FAMILIES)
_MEMORY: Final = re.compile(r"(?<![A-Z0-9.])(\d{1,3}) ?G(?:I?B)?(?![A-Z0-9])")
_FORMS: Final = (
    ("NVL", ("NVL",)),
    ("PCIe", ("PCIE", "PCI E")),
    ("SXM", ("SXM", "SXM2", "SXM3", "SXM4", "SXM5", "HBM3")),
)


def _clean(raw: str) -> str:
    """Return the text in upper case with one blank between words and no other signs."""
    return " ".join(re.sub(r"[^A-Z0-9.]+", " ", raw.upper()).split())


def _form_of(family: _Family, text: str) -> str:
    words = text.split()
    for form, signs in _FORMS:
        if form in family.forms and any(sign in words or (" " in sign and sign in text) for sign in signs):
            return form
    return ""


def _size_of(family: _Family, text: str, memory_gib: float | None) -> int:
    """Return the size that the text or the vendor's figure names, at most a tenth off; else the family's usual one."""
    stated = _MEMORY.search(text)
    hint = float(stated[1]) if stated else memory_gib
    if hint is None:
        return family.sizes[0]
    nearest = min(family.sizes, key=lambda size: abs(size - hint))
    return nearest if abs(nearest - hint) <= nearest / 10 else round(hint)


@lru_cache(maxsize=4096)
def gpu_model(raw: str, memory_gib: float | None = None) -> GpuModel | None:
    """Return the model that a vendor's text means, None when it is not known.

    memory_gib: of one card, when the vendor gives it beside the name; it tells the 40 GB card from the 80 GB one. A form
    (SXM, PCIe, NVL) stands in the name only where the text names it.
    """
    text = _clean(raw)
    for family, pattern in _COMPILED:
        if pattern.search(text) is None:
            continue
        size = _size_of(family, text, memory_gib)
        parts = [family.name, _form_of(family, text), f"{size}GB"]
        return GpuModel(" ".join(part for part in parts if part), size, family.maker)
    return None


def is_same_model(first: str, second: str) -> bool:
    """Say whether two names may mean the same model: equal, or one of them without a form that the other names."""
    a, b = gpu_model(first), gpu_model(second)
    if a is None or b is None:
        return _clean(first) == _clean(second)
    without = [{word for word in model.name.split() if word not in {"SXM", "PCIe", "NVL"}} for model in (a, b)]
    forms = [{word for word in model.name.split() if word in {"SXM", "PCIe", "NVL"}} for model in (a, b)]
    return without[0] == without[1] and (forms[0] == forms[1] or not all(forms))
