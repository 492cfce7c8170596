"""What is paid for and does nothing: which cards are idle, since when, what that costs, and what is done about it."""
