"""Everything that is asked of NVIDIA's library, through unmodified pynvml: three tiers of readings, each one optional."""
