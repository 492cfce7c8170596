"""The acceptance check of a server: its form, its report in words."""
