"""Delivery: what is to be told to whom, in an outbox that loses nothing, and the dispatcher that empties it."""
