"""Alerts: what is watched, what fires, and what is told of it."""
