"""Faults put into real sockets: namespaces, a line between them, an engine of known behaviour, fronts, the real prober."""
