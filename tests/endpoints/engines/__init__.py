"""Engines: commands, arguments, metrics, failures, health."""
