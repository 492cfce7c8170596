"""Probes as the panel keeps them: what is probed from where, what was found, percentiles over any range."""
