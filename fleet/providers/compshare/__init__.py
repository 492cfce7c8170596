"""Compshare (优云智算), UCloud's platform for GPU instances."""
