"""The connection to a provider, as all adapters use it."""

import httpx
import pytest

from fleet.providers.errors import AccessRefused, OutcomeUnknown, Throttled, Unavailable
from fleet.providers.http import Answer, ProviderHttp, raise_foreign


def test_a_key_with_characters_that_no_header_takes_is_a_key_that_is_refused():
    with pytest.raises(AccessRefused) as refused:
        ProviderHttp("https://api.example", headers={"Authorization": "密钥-secret"})
    assert "secret" not in f"{refused.value!r} {refused.value.__cause__!r}"


def test_a_signature_with_such_characters_is_refused_as_well():
    http = ProviderHttp("https://api.example", transport=httpx.MockTransport(lambda _: httpx.Response(200)))
    with pytest.raises(AccessRefused) as refused:
        http.send("GET", "/", headers={"Authorization": "Credential=密钥-secret"})
    assert "secret" not in f"{refused.value!r} {refused.value.__cause__!r}"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 502])
def test_without_the_providers_envelope_no_status_says_anything_of_a_machine(status):
    answer = Answer(status, httpx.Headers(), "not here")
    with pytest.raises(Unavailable):
        raise_foreign(answer, is_write=False)
    with pytest.raises(OutcomeUnknown):
        raise_foreign(answer, is_write=True)


def test_too_often_is_told_by_anybody():
    with pytest.raises(Throttled) as told:
        raise_foreign(Answer(429, httpx.Headers({"Retry-After": "7"}), ""), is_write=True)
    assert told.value.retry_after_seconds == 7
    raise_foreign(Answer(200, httpx.Headers(), ""), is_write=True)
