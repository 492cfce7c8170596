"""Writes of the accounts: users, tokens, sessions, log-ins. Pages and API call the same functions."""
