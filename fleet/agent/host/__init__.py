"""The machine that the cards are in: what it is, how busy it is, who its processes are, what its cgroup allows."""
