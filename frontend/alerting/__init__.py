"""Pages of alerts: what fires, one alert, rules, silences."""
