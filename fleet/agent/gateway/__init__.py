"""The gateway that an agent with that role runs: the data plane, its keys, what went through it. Nothing here knows Django."""
