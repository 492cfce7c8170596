"""The settings: one's own, and for admins those of everybody."""
