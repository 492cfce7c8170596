"""Our scripts as browsers get them: without the comments that only readers of the source need, which are a third of them."""

import re
from typing import Any, Final

from django.core.files.base import ContentFile, File

# Comments on lines of their own, and the casts of the type checker between code. Neither stands inside strings of ours.
_LINES: Final = re.compile(r"^[ \t]*(?:/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*)[ \t]*\n", re.MULTILINE)
_CASTS: Final = re.compile(r"/\*\* @(?:type|param)(?:[^*]|\*(?!/))*\*/ ?")
_INDENTATION: Final = re.compile(r"^[ \t]+", re.MULTILINE)


def without_comments(code: str) -> str:
    """Return a script without comments and without indentation; its strings must hold neither line breaks nor casts."""
    return _INDENTATION.sub("", _CASTS.sub("", _LINES.sub("", code)))


class LeanSource:
    """A source of static files whose scripts are read without their comments."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def open(self, name: str, mode: str = "rb") -> File:  # type: ignore[type-arg]  # either bytes
        """Return the file, lean."""
        with self._source.open(name, mode) as file:
            return ContentFile(without_comments(file.read().decode()).encode(), name=name)
