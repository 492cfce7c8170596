"""Samples, rollups, series and live topics."""
