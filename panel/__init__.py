"""The Fleetdeck project: settings, entry points and what every app stands on."""
