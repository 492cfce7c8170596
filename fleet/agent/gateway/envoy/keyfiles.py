"""API keys as the gateway's filter reads them: digests and rules, in files by the digest's first two digits."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from fleet.agent.gateway.checks import is_usable
from fleet.agent.gateway.envoy.layout import KEYS_FOLDER, replace
from fleet.agent.orders import KeyRule

MOST_PER_MINUTE = 600_000_000


def line_of(rule: KeyRule) -> str:
    """Return a key's line; see filter.lua for its fields."""
    endpoints = f",{','.join(rule.endpoints)}," if rule.endpoints else "*"
    # An expiry at or before 1970 is one that is over, not one that is missing.
    expires_ms = 0 if rule.expires_at_ms is None else max(rule.expires_at_ms, 1)
    per_minute = 0 if rule.requests_per_minute is None else min(max(rule.requests_per_minute, 1), MOST_PER_MINUTE)
    return f"{rule.digest} {rule.id} {expires_ms} {per_minute} {int(rule.is_held)} {endpoints}\n"


def write_keys(folder: Path, rules: Iterable[KeyRule]) -> int:
    """Make the files say what the rules say, touching only those that say something else; returns the bytes written.

    folder: the gateway's. Raises OSError.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for rule in rules:
        if is_usable(rule):
            files[rule.digest[:2]].append(line_of(rule))
    written = 0
    for path in (folder / KEYS_FOLDER).iterdir():
        if path.name not in files:
            path.unlink(missing_ok=True)
    for name, lines in files.items():
        written += replace(folder / KEYS_FOLDER / name, "".join(sorted(lines)).encode())
    return written
