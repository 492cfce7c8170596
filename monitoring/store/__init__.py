"""The time-series store inside Postgres: samples, sealed hours, rollups, and how they are read back."""
