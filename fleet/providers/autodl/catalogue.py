"""What AutoDL's documentation lists and no call returns: GPU specs, regions that take orders, public images."""

from collections.abc import Mapping
from typing import Final

from fleet.providers.gpu_models import GpuModel, gpu_model

# Spec id → model as the vendor's page writes it; these ids are of no other list (elastic deployment has names instead).
SPECS: Final[Mapping[str, str]] = {
    "h800": "H800 80GB",
    "v-48g": "RTX 4090 48GB",
    "v-48g-350w": "RTX 3090 48GB",
    "v-32g-p": "RTX 4080 SUPER 32GB",
    "4090D": "RTX 4090 D 24GB",
    "5090-p": "RTX 5090 32GB",
    "pro6000-p": "RTX PRO 6000 96GB",
}
COUNTS: Final = (1, 2, 3, 4)
# Regions where instances Pro can be ordered; the other regions of the documentation are of elastic deployment.
REGIONS: Final[Mapping[str, str]] = {"westDC3": "西北B区", "beijingDC2": "北京B区"}
DEFAULT_IMAGE: Final = "base-image-l2t43iu6uk"
IMAGES: Final[Mapping[str, str]] = {
    DEFAULT_IMAGE: "PyTorch 2.0.0, CUDA 11.8, Ubuntu 20.04",
    "base-image-l374uiucui": "PyTorch 1.11.0, CUDA 11.3, Ubuntu 20.04",
    "base-image-uxeklgirir": "TensorFlow 2.9.0, CUDA 11.2, Ubuntu 20.04",
    "base-image-mbr2n4urrc": "Miniconda, CUDA 11.6, Ubuntu 20.04",
    "base-image-l2843iu23k": "TensorRT 8.5.1, CUDA 11.8, Ubuntu 20.04",
}


def specs_of(option: str) -> dict[str, str]:
    """Return spec id → model: the documented ones and those of the account's option (`id=model, id=model`).

    An entry without a sign between id and model names the id alone; its model stays unknown.
    """
    found = dict(SPECS)
    for entry in filter(None, (part.strip() for part in option.split(","))):
        spec, _sign, model = entry.partition("=")
        found[spec.strip()] = model.strip()
    return found


def model_of(spec: str, alias: str, specs: Mapping[str, str]) -> GpuModel | None:
    """Return the model of a spec, or of the name beside it where the spec is not listed."""
    return gpu_model(specs.get(spec) or alias or spec)
