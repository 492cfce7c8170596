"""A provider without a bill: to try the panel without an account, for the demo, and for tests."""
