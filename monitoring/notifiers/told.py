"""What there is to tell of one topic, as plain text, and who knows how to put it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# What came after what: `recovered` is an opening and its end in one message, for what was over before it could be told.
MESSAGE_KINDS: Final = (
    "opening", "update", "reminder", "resolved", "flapping", "digest", "test", "recovered",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """One topic in the reader's language, as plain text: no markup, whatever stands in it is escaped where it is shown.

    subject: one line with what and where, without a word for the kind or severity; follow-ups repeat the opening's. rows:
    (label, value). links: (label, address); an address that begins with `/` is the panel's own. Times anywhere are ISO 8601
    with offset (`datetime.isoformat()`); they are shown in the recipient's zone.
    """

    subject: str
    first_line: str
    rows: tuple[tuple[str, str], ...] = field(default=())
    links: tuple[tuple[str, str], ...] = field(default=())


Teller = Callable[[Mapping[str, Any], str], Told]
_tellers: Final[dict[str, Teller]] = {}


def register_teller(prefix: str, teller: Teller) -> None:
    """Say who puts topics `<prefix>:…` into words; done once, when Django is set up.

    teller(facts, language) gets the announced facts plus `kind` (one of MESSAGE_KINDS) and `severity`, and a language code
    (`en`, `zh-hans`) that is in force already. It is pure: it reads no tables. For `recovered` the facts are the opening's
    overlaid with those of the end.
    """
    _tellers[prefix] = teller


def teller_of(topic: str) -> Teller | None:
    """Return who tells of this topic, or None."""
    return _tellers.get(topic.partition(":")[0])


def known_prefixes() -> list[str]:
    """Return the prefixes of topics that somebody can put into words."""
    return sorted(_tellers)
