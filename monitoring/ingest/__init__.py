"""From an agent's report to a committed sample: checks, derived metrics, group commit, live frames."""
