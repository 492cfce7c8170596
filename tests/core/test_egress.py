"""Where the panel connects to: no address of metadata, of the link or of a private network, however it is written."""

import ipaddress

import pytest

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
