"""Reads of the fleet's tables, for pages, API and live frames alike."""

from fleet.selectors.live import gpu_live, join_live, server_live

__all__ = ["gpu_live", "join_live", "server_live"]
