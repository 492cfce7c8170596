"""ctypes mirror of layout.h: the fixed structs of the file that describes a simulated server."""

import re
from ctypes import Structure, c_char, c_double, c_int32, c_int64, c_uint32, c_uint64
from pathlib import Path
from typing import Final

MAGIC: Final = 0x4D564446
MAX_DEVICES: Final = 64
MAX_PROCESSES: Final = 32
MAX_EVENTS: Final = 256
MAX_COUNTERS: Final = 256
NO_PARENT: Final = 0xFFFFFFFF
NO_INSTANCE: Final = 0xFFFFFFFF
FOREVER_NS: Final = 2**63 - 1
TEXT_LENGTH: Final = 92

_DEFINITION: Final = (Path(__file__).parent / "readings.def").read_text(encoding="utf-8")
READINGS: Final = tuple(re.findall(r"^READING\((\w+)\)$", _DEFINITION, re.MULTILINE))
READING_INDEX: Final = {name: index for index, name in enumerate(READINGS)}


class SimulationError(Exception):
    """The simulation cannot do what was asked; the message says why."""


class ReadingLayout(Structure):
    """A value and what its call answers; it grows by rate_per_second from since_ns (monotonic) on."""

    _fields_ = [
        ("value", c_int64),
        ("rate_per_second", c_double),
        ("since_ns", c_int64),
        ("code", c_int32),
        ("delay_us", c_uint32),
    ]


class TextLayout(Structure):
    """A text and what its call answers."""

    _fields_ = [("code", c_int32), ("value", c_char * TEXT_LENGTH)]


class ProcessLayout(Structure):
    """One process on a card."""

    _fields_ = [
        ("pid", c_uint32),
        ("kinds", c_uint32),
        ("memory_bytes", c_int64),
        ("sm_percent", c_uint32),
        ("memory_percent", c_uint32),
        ("encoder_percent", c_uint32),
        ("decoder_percent", c_uint32),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
        ("name", c_char * 64),
    ]


class DeviceLayout(Structure):
    """A card or a MIG instance."""

    _fields_ = [
        ("present", c_uint32),
        ("removed", c_uint32),
        ("code", c_int32),
        ("parent", c_uint32),
        ("hang_until_ns", c_int64),
        ("gpu_instance", c_uint32),
        ("compute_instance", c_uint32),
        ("process_count", c_uint32),
        ("reserved", c_uint32),
        ("name", TextLayout),
        ("uuid", TextLayout),
        ("serial", TextLayout),
        ("vbios", TextLayout),
        ("part_number", TextLayout),
        ("readings", ReadingLayout * len(READINGS)),
        ("processes", ProcessLayout * MAX_PROCESSES),
    ]


class EventLayout(Structure):
    """One event that waiting sets may be told of."""

    _fields_ = [("slot", c_uint32), ("reserved", c_uint32), ("type", c_uint64), ("data", c_uint64)]


class CounterLayout(Structure):
    """How often the library was asked for one function."""

    _fields_ = [("state", c_uint32), ("reserved", c_uint32), ("calls", c_uint64), ("function", c_char * 80)]


class HostLayout(Structure):
    """The whole file."""

    _fields_ = [
        ("magic", c_uint32),
        ("size", c_uint32),
        ("sequence", c_uint32),
        ("device_count", c_uint32),
        ("init_code", c_int32),
        ("calls_code", c_int32),
        ("wait_code", c_int32),
        ("cuda_version", c_uint32),
        ("hang_until_ns", c_int64),
        ("events_written", c_uint32),
        ("reserved", c_uint32),
        ("driver_version", TextLayout),
        ("nvml_version", TextLayout),
        ("events", EventLayout * MAX_EVENTS),
        ("counters", CounterLayout * MAX_COUNTERS),
        ("devices", DeviceLayout * MAX_DEVICES),
    ]
