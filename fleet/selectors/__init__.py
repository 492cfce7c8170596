"""Reads of the fleet's tables, for pages, API and live frames alike."""

from fleet.selectors.lists import (
    agent_list,
    fault_list,
    gpu_history,
    gpu_list,
    join_token_list,
    server_list,
)
from fleet.selectors.live import gpu_live, job_live, join_live, server_live

__all__ = [
    "agent_list",
    "fault_list",
    "gpu_history",
    "gpu_list",
    "gpu_live",
    "job_live",
    "join_live",
    "join_token_list",
    "server_list",
    "server_live",
]
