"""How a message looks and travels for each kind of channel: pure; it reads no tables and opens no connection."""
