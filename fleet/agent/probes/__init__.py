"""The prober: one request to one target from one place, with a time for every phase. The panel's worker runs the same code."""
