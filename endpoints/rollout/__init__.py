"""How an endpoint gets from what is to what is wanted: pure planning."""
