"""Inference endpoints: what clients call."""
