"""Generates load for a go-live test: arrivals at planned moments whatever the answers do, then steps of concurrency."""
