"""Views of the pages about inference endpoints."""
