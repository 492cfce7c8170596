"""Everything that writes to the fleet's tables. Each function is one intention, called by a view, a task or the ingest."""
