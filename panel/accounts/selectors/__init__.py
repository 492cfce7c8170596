"""Reads of the accounts."""
