"""Inference engines as pure functions: what is wanted in, command, image, health, metrics and drain out."""
