"""Rented servers: what is registered, what reports, what is billed."""
