"""What monitoring adds to the API: series, and the GPUs with their latest values."""
