"""Leases as pure rules: which state follows from what a provider says, and what a machine costs."""
