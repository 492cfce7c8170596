"""Diagnoses as the panel runs and keeps them: asked for, measured by several places at once, judged, kept as reports."""
