"""What keeps the panel from starting, as a sentence for the person at the terminal."""


class UpError(Exception):
    """One or two sentences: what is wrong, and what to do about it."""
