"""Engines of simulated servers: real processes that answer as the engines they stand for, and load the simulated cards."""
