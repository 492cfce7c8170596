"""Inference engines on this machine: what the panel ordered is started, watched, drained and stopped; they outlive the agent."""
