"""Embedded services and process supervision for `manage.py up`."""
