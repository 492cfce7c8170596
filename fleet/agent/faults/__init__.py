"""XIDs: what the driver says went wrong, from NVML's events and from the kernel's log, each told once."""
