"""Verda (formerly DataCrunch), API v1."""
