"""Tests of the diagnosis: worlds with known faults, invariants, and each part by itself."""
