"""An AutoDL account for the tests: the adapter over its fake, one that gets a fixed answer, an order, what was sent."""

import json

import httpx

from fleet.providers.autodl.adapter import AutoDl
from fleet.providers.base import Billing, MachineOrder
from tests.fakes.autodl import FakeAutoDl


def opened(vendor, **options):
    """Return the adapter of the fake's account."""
    return AutoDl(credentials=vendor.credentials, options=options, account="test", transport=vendor.transport)


def answering(response):
    """Return an adapter whose every call gets this answer."""
    return AutoDl(
        credentials=FakeAutoDl.credentials,
        options={},
        account="test",
        transport=httpx.MockTransport(lambda request: response),
    )


def order(**changes):
    """Return an order with changes to it."""
    facts = {
        "name": "fleetdeck-ab12cd34-7",
        "offer_key": "5090-p/2",
        "gpu_model": "RTX 5090 32GB",
        "gpu_count": 2,
        "region": "",
        "billing": Billing.HOURLY,
        "details": {"gpu_spec_uuid": "5090-p"},
        "options": FakeAutoDl.order_options,
        "startup_script": "#!/bin/sh\necho 'joined' > /tmp/fleetdeck\n",
    }
    return MachineOrder(**{**facts, **changes})


def sent(vendor, path):
    """Return the bodies of the requests to a path."""
    return [json.loads(request.content) for request in vendor.requests if request.url.path == path]
