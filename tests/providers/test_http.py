"""The connection to a provider, as all adapters use it."""

import pytest

from fleet.providers.errors import AccessRefused
from fleet.providers.http import ProviderHttp


def test_a_key_with_characters_that_no_header_takes_is_a_key_that_is_refused():
    with pytest.raises(AccessRefused) as refused:
        ProviderHttp("https://api.example", headers={"Authorization": "密钥-secret"})
    assert "secret" not in f"{refused.value!r} {refused.value.__cause__!r}"
