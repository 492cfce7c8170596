"""Faults put into real sockets: namespaces of their own with a line between them, an engine of known behaviour, fronts, the real prober."""
