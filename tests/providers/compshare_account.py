"""A Compshare account for the tests: the adapter over its fake, an order, what was sent, and answers put in by hand."""

from fleet.providers.base import Billing, MachineOrder
from fleet.providers.compshare.adapter import Compshare
from panel.core.money import Money
from tests.fakes.compshare import form_of


def opened(vendor, **options):
    """Return the adapter of the fake's account."""
    return Compshare(credentials=vendor.credentials, options=options, account="test", transport=vendor.transport)


def yuan(text):
    """Return an amount in yuan."""
    return Money.of(text, "CNY")


def order(**changes):
    """Return an order with changes to it."""
    facts = {
        "name": "fleetdeck-ab12cd34-7",
        "offer_key": "cn-wlcb-01/A800/8/Month",
        "gpu_model": "A800 80GB",
        "gpu_count": 8,
        "region": "cn-wlcb-01",
        "billing": Billing.MONTHLY,
        "details": {
            "region": "cn-wlcb",
            "zone": "cn-wlcb-01",
            "gpu_type": "A800",
            "cpu": 124,
            "memory_mib": 1843200,
            "boot_disk": "CLOUD_RSSD",
            "charge_type": "Month",
        },
        "options": {"image": "compshareImage-1", "disk_gb": "200"},
        "startup_script": "#!/bin/sh\necho joined\n",
    }
    return MachineOrder(**{**facts, **changes})


def sent(vendor, action):
    """Return the parameters of the requests of an action, without those that all have."""
    forms = [form_of(request) for request in vendor.requests]
    common = {"Action", "PublicKey", "Signature"}
    return [
        {key: value for key, value in form.items() if key not in common} for form in forms if form["Action"] == action
    ]


def instead(vendor, action, response):
    """Answer one action with this."""
    answer = vendor.answer
    vendor.answer = lambda request: response if form_of(request)["Action"] == action else answer(request)
