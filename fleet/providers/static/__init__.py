"""Machines whose landlord has no API."""
