"""Readings as `nvidia-smi` printed them on real cards: XML and CSV, by name, whatever the driver called them."""

import csv
import re
import xml.etree.ElementTree as ET

import pytest

from tests.scenarios.running import ROOT

SAMPLES = ROOT.parent / "shared" / "samples"
MIB = 1 << 20
NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(MiB|W|MHz|%|C)?\s*")

# What a reading is called: in CSV, in XML (the first path that holds a number counts), and its size in the simulation's unit.
COLUMNS = {
    "utilization_percent": ("utilization.gpu", ("utilization/gpu_util",), 1),
    "memory_total_bytes": ("memory.total", ("fb_memory_usage/total",), MIB),
    "memory_used_bytes": ("memory.used", ("fb_memory_usage/used",), MIB),
    "power_milliwatts": (
        "power.draw",
        (
            *("gpu_power_readings/average_power_draw", "gpu_power_readings/instant_power_draw"),
            *("gpu_power_readings/power_draw", "power_readings/power_draw"),
        ),
        1000,
    ),
    "temperature_celsius": ("temperature.gpu", ("temperature/gpu_temp",), 1),
    "memory_temperature_celsius": ("temperature.memory", ("temperature/memory_temp",), 1),
    "fan_percent": ("fan.speed", ("fan_speed",), 1),
    "sm_clock_mhz": ("clocks.current.sm", ("clocks/sm_clock",), 1),
}


def _number(text, size):
    match = NUMBER.fullmatch(text or "")
    return None if match is None else round(float(match[1]) * size)


def _from_csv(path):
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines, skipinitialspace=True):
            named = {name.partition(" [")[0]: text for name, text in row.items()}
            readings = {reading: _number(named[name], size) for reading, (name, _, size) in COLUMNS.items()}
            yield named["name"], readings


def _from_xml(path):
    for gpu in ET.parse(path).iter("gpu"):
        readings = {
            reading: next(
                (value for place in places if (value := _number(gpu.findtext(place), size)) is not None), None
            )
            for reading, (_, places, size) in COLUMNS.items()
        }
        yield gpu.findtext("product_name"), readings


def captured():
    """Return {file name: (card, its readings, None where there is none)}; skip where the captures are not here."""
    paths = [*SAMPLES.glob("smi_*.xml"), *SAMPLES.glob("csv_*_idle.csv"), *SAMPLES.glob("csv_*_load.csv")]
    paths = [path for path in paths if "_apps_" not in path.name]
    if not paths:
        pytest.skip(f"no captures in {SAMPLES}")
    read = {".csv": _from_csv, ".xml": _from_xml}
    return {path.name: card for path in sorted(paths) for card in read[path.suffix](path)}
