"""What a joining machine fetches from the panel: the installer, the agent's wheel and its locked requirements."""
