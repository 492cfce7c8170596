"""Whether a model fits on GPUs, in which way, and what that costs: pure functions over a model's shape."""
