"""What a model needs of memory, and what that costs."""
