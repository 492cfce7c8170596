"""Sentences that are kept and shown later, each reader in their own language: the text before translation, and its values."""

import json
from collections.abc import Mapping
from typing import Any, Final, Self

from django.utils.translation import gettext

LONGEST_VALUE: Final = 200


class Phrase(str):
    """English text that remembers how it was put together, so that it can be told in another language."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, str]

    def __new__(cls, template: str, values: Mapping[str, Any] | None = None) -> Self:
        """Return the phrase; without values it is its template."""
        kept = {name: str(value)[:LONGEST_VALUE] for name, value in (values or {}).items()}
        phrase = super().__new__(cls, template % kept if kept else template)
        phrase.template, phrase.values = template, kept
        return phrase

    def __mod__(self, values: Any) -> "Phrase":
        """Fill in values."""
        return Phrase(self.template, values)


def phrase(template: str) -> Phrase:
    """Mark a text for translation; modules import it as `_`, by which the strings are gathered."""
    return Phrase(template)


def stored(sentence: str) -> str:
    """Return the sentence as it is kept: a phrase as JSON, anything else as it is."""
    if not isinstance(sentence, Phrase):
        return sentence
    return json.dumps({"t": sentence.template, "v": dict(sentence.values)}, ensure_ascii=False)


def translated(sentence: str) -> str:
    """Return the sentence, a phrase or a stored one, in the language in force."""
    if isinstance(sentence, Phrase):
        template, values = sentence.template, sentence.values
    else:
        if not sentence.startswith('{"t": '):
            return sentence
        try:
            found = json.loads(sentence)
            template, values = str(found["t"]), found["v"]
        except (ValueError, KeyError, TypeError):
            return sentence
    text = gettext(template)
    return text % values if values else text
