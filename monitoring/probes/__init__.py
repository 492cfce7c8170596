"""The panel as a place that probes: the agents' prober, with the panel's own rules for addresses."""
