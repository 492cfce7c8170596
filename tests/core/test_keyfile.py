"""Secrets that the panel keeps for itself."""

import stat

from panel.core.keyfile import read_or_create


def test_a_secret_is_made_once_and_only_its_user_can_read_it(tmp_path):
    path = tmp_path / "deep" / "secret-key"
    first = read_or_create(path)
    assert read_or_create(path) == first
    assert len(first) >= 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["secret-key"]
