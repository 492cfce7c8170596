"""Envoy as data plane: its configuration as files, its process, its counters."""
