"""Our scripts as browsers get them: without what only readers of the source need.

That is comments, which are a third of them, indentation, and blanks beside operators. Nothing is renamed, so that a browser's
debugger still shows the code as it was written.
"""

import re
from typing import Any, Final

from django.core.files.base import ContentFile, File

# Comments on lines of their own, and the casts of the type checker between code. Neither stands inside strings of ours.
_LINES: Final = re.compile(r"^[ \t]*(?:/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*)[ \t]*\n", re.MULTILINE)
_CASTS: Final = re.compile(r"/\*\* @(?:type|param)(?:[^*]|\*(?!/))*\*/ ?")
_INDENTATION: Final = re.compile(r"^[ \t]+", re.MULTILINE)
# Blanks that mean nothing; strings are matched first and stay as they are.
_STRING: Final = r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`\n]*`)"""
_BLANKS: Final = re.compile(
    _STRING
    + r"| (=>|===|!==|&&|\|\||\?\?|[-+*/]=|<=|>=|[<>=?:]) | ([-+/%]) (?![-+/])|(?<=[,;:{)]) (?=[^/\n])| (?=[{}])|(?<=\bif) (?=\()"
)
# A line with "//" may end in a comment and keeps its end.
_LINE_ENDS: Final = re.compile(r"^((?:(?!//)[^\n])*[{;,(\[])\n+", re.MULTILINE)


def without_comments(code: str) -> str:
    """Return a script without comments, indentation and needless blanks; its strings must hold neither line breaks nor casts."""
    return _LINE_ENDS.sub(r"\1", _BLANKS.sub(_kept, uncommented(code)))


def uncommented(code: str) -> str:
    """Return a script without comments and indentation."""
    return _INDENTATION.sub("", _CASTS.sub("", _LINES.sub("", code)))


def _kept(match: re.Match[str]) -> str:
    """Return a string whole, of blanks nothing, and an operator without those beside it."""
    return match[1] or match[2] or match[3] or ""


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
