"""Tests of the go-live test: its statistics against exact arithmetic, its arrivals, its judgement."""
