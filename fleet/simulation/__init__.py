"""A simulated fleet: a libnvidia-ml of our own, cards that behave, and a demo that runs real agents on them."""
