"""Addresses and forms with what no column holds: refused or read as nothing, never an error of the panel."""

import pytest
from django.urls import reverse

from fleet.models import Operation
from tests.frontend.leasing import running, simulated

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "address",
    [
        "/leases/?q=a%00b",
        "/leases/csv/?q=%00",
        "/offers/?model=%00",
        "/offers/?region=%00&currency=%00",
        "/offers/?count=99999999999999999&account=99999999999999999",
        "/drift/?q=%00&account=%00",
        "/operations/?account=%00",
        "/providers/new/?kind=%00",
        "/events/?q=%00",
        "/fleet/?q=%00",
        f"/leases/{10**30}/",
        f"/operations/{10**30}/",
    ],
)
def test_an_address_that_no_column_holds_is_no_error_of_the_panel(ada, address):
    assert ada.get(address, follow=True).status_code in {200, 400, 404}


def test_a_form_that_no_column_holds_is_refused(ada):
    lease = running(simulated())
    for values in ({"reason": "a\0b"}, {"key": "a\0b"}):
        assert ada.post(reverse("lease-act", args=[lease.pk, "stop"]), values).status_code == 400
    assert not Operation.objects.filter(kind="stop").exists()
