"""Prompts of about so many tokens: common words of one token each; what makes each unique stands before them."""

from functools import lru_cache
from typing import Final

_WORDS: Final = (
    "time", "year", "people", "way", "day", "man", "thing", "world", "life", "hand", "part", "child", "eye", "place", "work",
    "week", "case", "point", "company", "number", "group", "problem", "fact", "water", "room", "side", "name", "story", "book",
)  # fmt: skip
ASK: Final = "Continue this list of words:"


@lru_cache(maxsize=64)
def prompt_of(tokens: int) -> str:
    """Return a prompt; a tokenizer of English text has one token for each of its words."""
    count = max(tokens - len(ASK.split()), 1)
    return f"{ASK} {' '.join(_WORDS[number % len(_WORDS)] for number in range(count))}"
