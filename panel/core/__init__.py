"""Words and tools that every other part uses; imports nothing above it."""
