"""A day of a fleet for the store's benchmarks: readings with the shape of real ones, the same for us and for every peer.

Training cards sit near their power limit, inference comes in bursts, parked ones hold memory and do nothing. Values are
what NVML gives: whole percents, milliwatts, clocks in steps of 15 MHz, memory in pages of 2 MiB, counters as bytes/s.
"""

import numpy as np

METRICS = (
    *("utilization_percent", "memory_busy_percent", "memory_used_bytes", "power_watts", "energy_power_watts"),
    *("temperature_celsius", "memory_temperature_celsius", "sm_clock_mhz", "memory_clock_mhz"),
    *("encoder_percent", "decoder_percent", "pcie_tx_bytes_per_second", "pcie_rx_bytes_per_second"),
    *("nvlink_tx_bytes_per_second", "throttled_percent", "power_capped_percent"),
)
SHAPES = ("training", "inference", "parked", "inference")


def load_of(shape, count, random):
    """Return how busy a card is, 0 to 1, over `count` samples."""
    steps = np.arange(count)
    if shape == "training":  # steady, with a dip for each checkpoint
        return np.where(steps % 540 < 12, 0.05, 0.97) + random.normal(0, 0.01, count)
    if shape == "inference":  # bursts on a daily wave
        wave = 0.4 + 0.35 * np.sin(steps / count * 2 * np.pi)
        return wave * (random.random(count // 6 + 1).repeat(6)[:count] > 0.3) + random.normal(0, 0.03, count)
    return np.zeros(count)


def card(number, count):
    """Return (metrics × samples) float32 of one card."""
    random = np.random.default_rng(number)
    load = np.clip(load_of(SHAPES[number % len(SHAPES)], count, random), 0, 1)
    slow = np.convolve(load, np.ones(30) / 30, mode="same")  # temperature follows
    power = np.round(
        78_000 + load * 560_000 + random.normal(0, 1_500, count) * (load > 0) + random.normal(0, 120, count)
    )
    pages = np.round(20_000 + 30_000 * (load > 0.02) + np.cumsum(random.integers(-1, 2, count) * (load > 0.5)))
    capped = np.clip(np.round((load - 0.9) * 500), 0, 100)
    rows = {
        "utilization_percent": np.round(load * 100),
        "memory_busy_percent": np.round(load * 40 + random.normal(0, 1, count) * (load > 0)).clip(0, 100),
        "memory_used_bytes": pages * 2**21,
        "power_watts": power / 1000,
        "energy_power_watts": np.round(power + random.normal(0, 900, count)) / 1000,
        "temperature_celsius": np.round(31 + slow * 38),
        "memory_temperature_celsius": np.round(36 + slow * 42),
        "sm_clock_mhz": np.where(load > 0.01, 1980 - 15 * np.round(capped / 100 * random.integers(0, 8, count)), 345),
        "memory_clock_mhz": np.full(count, 2619.0),
        "encoder_percent": np.zeros(count),
        "decoder_percent": np.zeros(count),
        "pcie_tx_bytes_per_second": np.round(load * random.gamma(4, 5e6, count)),
        "pcie_rx_bytes_per_second": np.round(load * random.gamma(4, 8e6, count)),
        "nvlink_tx_bytes_per_second": np.round(load * random.gamma(9, 2e9, count) / 1024) * 1024,
        "throttled_percent": np.zeros(count),
        "power_capped_percent": capped,
    }
    return np.array([rows[name] for name in METRICS], dtype=np.float32)


def times(start_ms, count, step_ms, number):
    """Return a card's sample times: a regular beat with a few ms of jitter."""
    return start_ms + np.arange(count) * step_ms + np.random.default_rng(1000 + number).integers(0, 12, count)
