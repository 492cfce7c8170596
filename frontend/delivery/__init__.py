"""Channels and notifications as their pages show them."""
