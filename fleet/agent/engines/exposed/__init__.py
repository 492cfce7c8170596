"""What engines tell of themselves on their metrics page, under one name whatever the engine and its version call it."""
