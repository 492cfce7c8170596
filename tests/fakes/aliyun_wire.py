"""What the fake Alibaba Cloud has on offer, and how its requests and answers look on the wire."""

import re
from urllib.parse import unquote_plus

import httpx

HOME, AWAY = "cn-hangzhou", "cn-shanghai"
RAW = {
    "provisioning": "Pending",
    "starting": "Starting",
    "running": "Running",
    "stopping": "Stopping",
    "stopped": "Stopped",
}
SPECS = {
    "2014-05-26": "alibaba/ecs-2014-05-26.subset.described.json",
    "2017-12-14": "alibaba/bssopenapi-2017-12-14.subset.described.json",
}
WRITES = {"RunInstances", "StartInstance", "StopInstance", "RebootInstance", "DeleteInstance", "CreateImage"}
USER_DATA_LIMIT = 32 * 1024
# Type → (card, cards, GiB of a card, vCPU, GiB of memory).
TYPES = {
    "ecs.gn7i-c8g1.2xlarge": ("NVIDIA A10", 1, 24, 8, 30),
    "ecs.gn6e-c12g1.24xlarge": ("NVIDIA V100", 8, 32, 96, 736),
    "ecs.gn9-new.large": ("NVIDIA Z9", 1, 512, 4, 16),
}
PRICES = {"ecs.gn7i-c8g1.2xlarge": "9.6137", "ecs.gn6e-c12g1.24xlarge": "161.2"}
PERIOD_FACTOR = {"Hour": 1, "Week": 70, "Month": 288, "Year": 2880}
ZONES = {
    "cn-hangzhou-h": {
        "ecs.gn7i-c8g1.2xlarge": ("Available", "WithStock"),
        "ecs.gn9-new.large": ("Available", "WithStock"),
    },
    "cn-hangzhou-i": {
        "ecs.gn7i-c8g1.2xlarge": ("Available", "ClosedWithStock"),
        "ecs.gn6e-c12g1.24xlarge": ("SoldOut", "WithoutStock"),
        "ecs.g7.large": ("Available", "WithStock"),
    },
}


def region_of(request):
    """Return the region whose server was asked, "" for products that have one server. Hangzhou's has names of its own."""
    product, _, rest = request.url.host.removesuffix(".aliyuncs.com").partition(".")
    if product in {"ecs-cn-hangzhou", "vpc"} and not rest:
        return HOME
    return rest


def numbered(outer, inner, entries, params):
    """Return the page of a list that counts its pages."""
    size = int(params["PageSize"])
    start = (int(params["PageNumber"]) - 1) * size
    shown = entries[start : start + size]
    return httpx.Response(200, json={outer: {inner: shown}, "TotalCount": len(entries)})


def snake(action):
    """Return the name of an action as Python writes it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()


def query_of(request):
    """Return the parameters of a request as they came, each once."""
    raw = request.url.query.decode()
    pairs = [part.partition("=") for part in raw.split("&") if part]
    assert len({name for name, _, _ in pairs}) == len(pairs), "a parameter comes twice"
    assert "+" not in raw, "a blank is %20 here"
    return {unquote_plus(name): unquote_plus(value) for name, _, value in pairs}


def created(machine_id):
    """Return the answer of RunInstances."""
    ids = {"InstanceIdSet": [machine_id.partition(":")[2]]}
    return httpx.Response(200, json={"RequestId": "473469C7", "OrderId": "1", "InstanceIdSets": ids})


def refused(status, code, message):
    """Return an error as the gateway shapes it."""
    body = {
        "RequestId": "540CFF28-407A-40B5-B6A5-74Bxxxxxxxxx",
        "HostId": "ecs.aliyuncs.com",
        "Code": code,
        "Message": message,
    }
    return httpx.Response(status, json=body)
