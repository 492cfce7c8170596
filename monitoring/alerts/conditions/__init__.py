"""Conditions over windows of samples: pure, with `now` as an argument. Times are Unix seconds."""
