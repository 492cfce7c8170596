"""AutoDL, container instances Pro."""
