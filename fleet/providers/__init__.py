"""Providers of rented machines: one protocol, one folder each (client.py speaks HTTP, adapter.py maps), one registry."""
