"""Vast.ai, API v0 and v1."""
