"""The tier that is read once, and again after every initialisation: what card this is and where its limits are."""

from typing import Any, Final

import pynvml

from fleet.agent import wire
from fleet.agent.nvml.readings import Readings

ARCHITECTURES: Final = {
    pynvml.NVML_DEVICE_ARCH_KEPLER: "Kepler",
    pynvml.NVML_DEVICE_ARCH_MAXWELL: "Maxwell",
    pynvml.NVML_DEVICE_ARCH_PASCAL: "Pascal",
    pynvml.NVML_DEVICE_ARCH_VOLTA: "Volta",
    pynvml.NVML_DEVICE_ARCH_TURING: "Turing",
    pynvml.NVML_DEVICE_ARCH_AMPERE: "Ampere",
    pynvml.NVML_DEVICE_ARCH_ADA: "Ada",
    pynvml.NVML_DEVICE_ARCH_HOPPER: "Hopper",
    pynvml.NVML_DEVICE_ARCH_BLACKWELL: "Blackwell",
    pynvml.NVML_DEVICE_ARCH_RUBIN: "Rubin",
}
COMPUTE_MODES: Final = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: "default",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive_thread",
    pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive_process",
}
MAX_NVLINKS: Final = 64


def read_facts(handle: Any, readings: Readings, pci_bus_id: str) -> wire.GpuFacts:
    """Return what a card is. Raises CardLostError and StartOverError."""
    facts = wire.GpuFacts(pci_bus_id=pci_bus_id)
    _identity(facts, handle, readings)
    _sizes(facts, handle, readings)
    _limits(facts, handle, readings)
    _modes(facts, handle, readings)
    return facts


def read_memory(handle: Any, readings: Readings) -> Any:
    """Return total, used and, by the newer call, reserved bytes; the older call counts reserved ones as used."""
    return readings.ask_newest(
        "memory_used_bytes",
        lambda: pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2),
        lambda: pynvml.nvmlDeviceGetMemoryInfo(handle),
    )


def _identity(facts: wire.GpuFacts, handle: Any, readings: Readings) -> None:
    ask = readings.ask
    facts.name = (ask("name", pynvml.nvmlDeviceGetName, handle) or "")[:100]
    facts.architecture = ARCHITECTURES.get(ask("architecture", pynvml.nvmlDeviceGetArchitecture, handle), "")
    capability = ask("compute_capability", pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    facts.compute_capability = ".".join(str(part) for part in capability) if capability else ""
    facts.serial = (ask("serial", pynvml.nvmlDeviceGetSerial, handle) or "")[:100]
    facts.vbios = (ask("vbios", pynvml.nvmlDeviceGetVbiosVersion, handle) or "")[:100]
    node = ask("numa_node", pynvml.nvmlDeviceGetNumaNodeId, handle)
    facts.numa_node = node if node is not None and node >= 0 else None


def _sizes(facts: wire.GpuFacts, handle: Any, readings: Readings) -> None:
    memory = read_memory(handle, readings)
    if memory is not None:
        facts.memory_total_bytes = int(memory.total)
        facts.memory_reserved_bytes = getattr(memory, "reserved", None)
    bar1 = readings.ask("bar1_total_bytes", pynvml.nvmlDeviceGetBAR1MemoryInfo, handle)
    facts.bar1_total_bytes = int(bar1.bar1Total) if bar1 is not None else None
    facts.nvlink_links = _nvlink_links(handle, readings)


def _nvlink_links(handle: Any, readings: Readings) -> int | None:
    answers = readings.ask(
        "nvlink_links", pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT]
    )
    if answers is None:
        return None
    if answers[0].nvmlReturn != pynvml.NVML_SUCCESS:
        readings.refused("nvlink_links", answers[0].nvmlReturn)
        return None
    return min(int(answers[0].value.uiVal), MAX_NVLINKS)


def _limits(facts: wire.GpuFacts, handle: Any, readings: Readings) -> None:
    ask = readings.ask
    facts.power_limit_milliwatts = ask("power_limit_milliwatts", pynvml.nvmlDeviceGetPowerManagementLimit, handle)
    facts.power_limit_default_milliwatts = ask(
        "power_limit_default_milliwatts", pynvml.nvmlDeviceGetPowerManagementDefaultLimit, handle
    )
    constraints = ask("power_limit_maximum_milliwatts", pynvml.nvmlDeviceGetPowerManagementLimitConstraints, handle)
    facts.power_limit_maximum_milliwatts = int(constraints[1]) if constraints else None
    threshold = pynvml.nvmlDeviceGetTemperatureThreshold
    for name, number in (
        ("temperature_shutdown_celsius", pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
        ("temperature_slowdown_celsius", pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        ("temperature_maximum_celsius", pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX),
    ):
        setattr(facts, name, ask(name, threshold, handle, number))
    clock = pynvml.nvmlDeviceGetMaxClockInfo
    facts.sm_clock_maximum_mhz = ask("sm_clock_maximum_mhz", clock, handle, pynvml.NVML_CLOCK_SM)
    facts.memory_clock_maximum_mhz = ask("memory_clock_maximum_mhz", clock, handle, pynvml.NVML_CLOCK_MEM)
    facts.pcie_generation_maximum = ask("pcie_generation_maximum", pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    facts.pcie_width_maximum = ask("pcie_width_maximum", pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle)


def _modes(facts: wire.GpuFacts, handle: Any, readings: Readings) -> None:
    ask = readings.ask
    ecc = ask("ecc_mode", pynvml.nvmlDeviceGetEccMode, handle)
    facts.ecc_mode = bool(ecc[0]) if ecc else None
    mig = ask("mig_mode", pynvml.nvmlDeviceGetMigMode, handle)
    facts.mig_mode = bool(mig[0]) if mig else None
    facts.compute_mode = COMPUTE_MODES.get(ask("compute_mode", pynvml.nvmlDeviceGetComputeMode, handle), "")
