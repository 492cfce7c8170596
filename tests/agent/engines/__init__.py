"""Engines on a machine: real processes, a real container engine, and the pure cores that decide about them."""
