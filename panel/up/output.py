"""What the person at the terminal reads, and what stays in <data>/logs: one line at a time, named after its process."""

import logging
import sys
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

LOG_BYTES: Final = 10 * 1024 * 1024
LOG_FILES: Final = 5
NAME_WIDTH: Final = 8
COLOURS: Final = {
    "up": "1",
    "postgres": "34",
    "valkey": "31",
    "web": "32",
    "worker": "33",
    "beat": "35",
    "prober": "35",
    "agent": "36",
    "demo": "36",
}


def shown(_: str) -> bool:
    """Show every line on the terminal."""
    return True


class Output:
    """Lines of one process: to the terminal with its name in front, and to its rotating log file."""

    def __init__(self, name: str, directory: Path, *, is_shown: Callable[[str], bool] = shown) -> None:
        self.name = name
        self.path = directory / f"{name}.log"
        self._is_shown = is_shown
        self._file = RotatingFileHandler(self.path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
        self._is_colourful = sys.stdout.isatty()

    def line(self, text: str) -> None:
        """Write one line to the log file and, where its kind is shown, to the terminal."""
        self._file.emit(logging.LogRecord(self.name, logging.INFO, "", 0, "%s", (text,), None))
        if self._is_shown(text):
            self.show(text)

    def show(self, text: str) -> None:
        """Write one line to the terminal. A terminal that went away does not stop the panel."""
        name = self.name.ljust(NAME_WIDTH)
        if self._is_colourful:
            name = f"\033[{COLOURS.get(self.name, '0')}m{name}\033[0m"
        try:
            print(f"{name} | {text}", flush=True)
        except OSError:
            self._is_shown = lambda _: False

    def close(self) -> None:
        """Close the log file."""
        self._file.close()
