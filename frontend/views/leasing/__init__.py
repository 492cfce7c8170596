"""Pages about what is rented."""
