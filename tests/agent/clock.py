"""A monotonic clock that a test moves by hand."""


class Clock:
    """Stands in for the module `time` where only `monotonic` is asked for."""

    def __init__(self, now=1_000.0):
        self.now = now

    def monotonic(self):
        return self.now
