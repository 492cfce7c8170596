"""How long time series are kept, and how much one agent may send."""

from panel.settings.environment import env

RAW_RETENTION_HOURS = env.int("FLEETDECK_RAW_RETENTION_HOURS", default=48)
MINUTE_RETENTION_DAYS = env.int("FLEETDECK_MINUTE_RETENTION_DAYS", default=90)
HOUR_RETENTION_DAYS = env.int("FLEETDECK_HOUR_RETENTION_DAYS", default=730)
INGEST_REPORTS_PER_SECOND = env.float("FLEETDECK_INGEST_REPORTS_PER_SECOND", default=10.0)
INGEST_REPORTS_BURST = env.int("FLEETDECK_INGEST_REPORTS_BURST", default=60)
WATCHED_INTERVAL_SECONDS = env.float("FLEETDECK_WATCHED_INTERVAL_SECONDS", default=2.0)
