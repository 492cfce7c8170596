"""Where the panel connects to: no address of metadata, of the link or of a private network, however it is written."""

import ipaddress

import httpx
import pytest

from panel.core import egress
from panel.core.egress import is_allowed


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "10.0.0.1",
        "::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::10.0.0.1",
        "2002:a9fe:a9fe::1",
        "2002:7f00:1::",
    ],
)
def test_what_leads_inside_is_refused(address):
    assert not is_allowed(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "64:ff9b::1.1.1.1", "2002:101:101::1"])
def test_what_lies_outside_is_allowed(address):
    assert is_allowed(ipaddress.ip_address(address))


def test_an_answer_that_drips_is_given_up(monkeypatch):
    drops = []

    def dripping():
        for _ in range(1000):
            drops.append(1)
            yield b"."

    monkeypatch.setattr(egress.time, "monotonic", lambda: 5.0 * len(drops))
    with pytest.raises(httpx.ReadTimeout):
        egress.read_whole(httpx.Response(200, content=dripping()))
    assert len(drops) < 20
