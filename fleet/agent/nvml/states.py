"""What is wrong with the driver as a whole: a state for programs, a sentence with the next step for people."""

from typing import Final

import pynvml

from fleet.agent.nvml import library
from fleet.agent.nvml.errors import sentence_of

STATE_OF_CODE: Final = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no_library",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "not_loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "version_mismatch",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_OPERATING_SYSTEM: "no_permission",
}
SENTENCES: Final = {
    "no_library": (
        "NVIDIA's library libnvidia-ml.so.1 is not here: install the driver, or start the container with the GPUs"
        " passed in (--gpus all)."
    ),
    "not_loaded": "The NVIDIA kernel module is not loaded: run nvidia-smi as root, and look for its error in dmesg.",
    "version_mismatch": "The driver was upgraded under a running kernel module: reboot, or reload the module.",
    "no_permission": "The device files /dev/nvidia* may not be opened: run as root or as a user that may.",
    "no_gpu": "The driver works but lists no GPU: look for the cards in lspci, and for Xid lines in dmesg.",
    "error": "The driver does not initialise: {answer}. In a container, restart it or pass the GPUs in again.",
    "not_answering": "A call into the driver has not returned: look for Xid lines in dmesg; the machine may need a reboot.",
}


class DriverError(Exception):
    """The driver gives no cards: `state` of wire.DRIVER_STATES and `detail`, the sentence for people."""

    def __init__(self, state: str, detail: str) -> None:
        super().__init__(detail)
        self.state = state
        self.detail = detail


def trouble_of(code: int) -> DriverError:
    """Return state and sentence for a return code of the initialisation."""
    state = STATE_OF_CODE.get(code, "error")
    sentence = SENTENCES[state].format(answer=sentence_of(code))
    if state == "version_mismatch":
        sentence = f"{sentence} {_versions()}".rstrip()
    return DriverError(state, sentence)


def _versions() -> str:
    module, loaded = library.kernel_module_version(), library.loaded_library_version()
    if not module or not loaded:
        return ""
    return f"Kernel module {module}, library {loaded}."
