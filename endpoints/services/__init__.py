"""Writes: endpoints, revisions, replicas, gateways, keys."""
