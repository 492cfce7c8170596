"""What this machine really is: measured once, politely, for comparison with what was ordered."""
