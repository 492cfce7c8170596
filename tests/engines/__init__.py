"""Engines for tests: a small OpenAI-compatible one whose faults are options."""
