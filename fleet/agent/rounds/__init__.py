"""Measures one endpoint for a diagnosis: paired rounds, sweeps over prompt lengths and concurrency, the engine's own times."""
