"""GPU models get one name, however a vendor or the driver writes them."""

import pytest

from fleet.providers.gpu_models import GIB, gpu_model, is_same_model


@pytest.mark.parametrize(
    ("raw", "memory_gib", "name"),
    [
        ("NVIDIA GeForce RTX 4090", 24, "RTX 4090 24GB"),
        ("RTX 4090 D", None, "RTX 4090 D 24GB"),
        ("RTX 4090", 47.99, "RTX 4090 48GB"),
        ("H100 (80 GB SXM5)", None, "H100 SXM 80GB"),
        ("1x H100 SXM5 80GB", None, "H100 SXM 80GB"),
        ("NVIDIA H100 80GB HBM3", None, "H100 SXM 80GB"),
        ("H100 (80 GB PCIe)", None, "H100 PCIe 80GB"),
        ("H100 NVL", 93.58, "H100 NVL 94GB"),
        ("A100 (40 GB SXM4)", None, "A100 SXM 40GB"),
        ("A100 PCIE", 80, "A100 PCIe 80GB"),
        ("Tesla V100 (16 GB)", None, "V100 16GB"),
        ("GH200 (96 GB)", None, "GH200 96GB"),
        ("B200 (180 GB SXM6)", None, "B200 180GB"),
        ("RTX 6000 (24 GB)", None, "Quadro RTX 6000 24GB"),
        ("Q RTX 8000", 45, "Quadro RTX 8000 48GB"),
        ("RTX A6000 48GB", None, "A6000 48GB"),
        ("RTX 6000Ada", 47.99, "RTX 6000 Ada 48GB"),
        ("RTX 4500Ada", 24, "RTX 4500 Ada 24GB"),
        ("RTX PRO 6000 WS", 95.6, "RTX PRO 6000 96GB"),
        ("RTX PRO 4000", 24, "RTX PRO 4000 24GB"),
        ("RTX 4070S Ti", 16, "RTX 4070 Ti 16GB"),
        ("RTX 4070S", 12, "RTX 4070 SUPER 12GB"),
        ("RTX 4080S", 16, "RTX 4080 SUPER 16GB"),
        ("RTX 3060 Ti", 8, "RTX 3060 Ti 8GB"),
        ("RTX 3060", 12, "RTX 3060 12GB"),
        ("RTX 5070", 12, "RTX 5070 12GB"),
        ("A10 (24 GB PCIe)", None, "A10 24GB"),
        ("L40S", None, "L40S 48GB"),
        ("MI300X", 192, "MI300X 192GB"),
    ],
)
def test_a_vendors_text_becomes_the_models_name(raw, memory_gib, name):
    model = gpu_model(raw, memory_gib)
    assert model.name == name
    assert name.endswith(f"{model.memory_gib}GB")
    assert model.memory_bytes == model.memory_gib * GIB


@pytest.mark.parametrize("raw", ["", "N/A", "CPU Node", "AMD EPYC", "NVIDIA Z9000", "RTX 40900"])
def test_a_text_that_names_no_model_is_none(raw):
    assert gpu_model(raw) is None


def test_a_form_that_only_one_text_names_does_not_make_two_models():
    assert is_same_model("H100 80GB", "H100 SXM 80GB")
    assert not is_same_model("H100 PCIe 80GB", "H100 SXM 80GB")
    assert not is_same_model("A100 40GB", "A100 80GB")
    assert is_same_model("NVIDIA Z9000", "nvidia z9000")
    assert not is_same_model("NVIDIA Z9000", "H100 80GB")
