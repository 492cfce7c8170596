"""What the tests of every provider share: an adapter over its fake, orders, and answers put in by hand."""

import json

import httpx

from fleet.providers.base import MachineOrder
from fleet.providers.registry import PROVIDERS

NAME = "fleetdeck-ab12cd34-7"
SCRIPT = "#!/bin/sh\necho joined\n"


def opened(vendor, **options):
    """Return the adapter of the fake's account."""
    return PROVIDERS[vendor.kind](
        credentials=vendor.credentials,
        options={**vendor.options, **options},
        account="test",
        transport=vendor.transport,
    )


def answering(kind, credentials, *answers, options=None):
    """Return an adapter that gets these answers, one after the other; each is (status, body) or an httpx.Response."""
    left = list(answers)

    def answer(request):
        found = left.pop(0)
        if isinstance(found, httpx.Response):
            return found
        status, body = found
        return httpx.Response(status, text=body if isinstance(body, str) else json.dumps(body))

    return PROVIDERS[kind](
        credentials=credentials, options=options or {}, account="test", transport=httpx.MockTransport(answer)
    )


def order_for(offer, vendor, *, name=NAME, script=SCRIPT, maximum=None, **changes):
    """Return an order for an offer, with the fake's options and changes to them."""
    return MachineOrder(
        name=name,
        offer_key=offer.key,
        gpu_model=offer.gpu_model,
        gpu_count=offer.gpu_count,
        region=offer.region,
        billing=offer.billing,
        details=offer.details,
        options={**vendor.order_options, **changes},
        startup_script=script,
        max_price_per_hour=maximum,
    )


def bodies(vendor, method, path):
    """Return the JSON bodies of the requests with this method to a path that ends so."""
    return [
        json.loads(request.content)
        for request in vendor.requests
        if request.method == method and request.url.path.endswith(path)
    ]
