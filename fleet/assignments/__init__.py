"""What agents are asked to do, and how they wait for it to change."""
