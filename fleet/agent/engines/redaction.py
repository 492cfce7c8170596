"""Keeps the secrets of an order out of logs, statuses and errors."""

import json
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from fleet.agent.orders import ReplicaOrder

MASK: Final = "[secret]"
# Shorter ones would tear holes into every line; nothing of value is that short.
LEAST: Final = 4


class Redactor:
    """Replaces each secret of one order, also as it looks within JSON or a URL; of those with several lines, each line."""

    def __init__(self, order: ReplicaOrder) -> None:
        self._secrets = sorted(_spellings([*order.secrets.values(), order.upstream_key]), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


def _spellings(secrets: Iterable[str]) -> set[str]:
    found = set()
    for secret in secrets:
        for line in {secret, *secret.splitlines()}:
            bare = line.strip()
            found |= {line, bare, json.dumps(bare)[1:-1], quote(bare, safe=""), repr(bare)[1:-1]}
    return {spelling for spelling in found if len(spelling) >= LEAST}
