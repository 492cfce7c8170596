"""A Vast.ai account, as API v0 and v1 show it."""

import base64
import json
import re
from datetime import UTC, datetime

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor
from tests.providers.spec import openapi

INSTANCE = re.compile(r"/api/v0/instances/(reboot/)?(\d+)/")
ASK = re.compile(r"/api/v0/asks/(\d+)/")
ORDER_KEYS = {"image", "disk", "label", "runtype", "env", "onstart", "target_state", "cancel_unavail", "price"}
OPERATORS = {"eq", "neq", "gt", "gte", "lt", "lte", "in", "notin"}
# Our word → actual_status, intended_status, cur_state, next_state.
STATES = {
    "provisioning": (None, "running", "stopped", "running"),
    "starting": ("loading", "running", "running", "running"),
    "running": ("running", "running", "running", "running"),
    "stopping": ("running", "stopped", "running", "stopped"),
    "stopped": ("exited", "stopped", "stopped", "stopped"),
    "outbid": ("exited", "stopped", "stopped", "stopped"),
}
ASKS = [
    {
        "id": 7001,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_ram": 24564,
        "cpu_cores": 64,
        "cpu_cores_effective": 32.0,
        "cpu_ram": 128576,
        "disk_space": 812.4,
        "dph_base": 0.4,
        "dph_total": 0.41041666666666665,
        "min_bid": 0.16,
        "storage_cost": 0.15,
        "geolocation": "California, US",
        "reliability": 0.998,
        "reliability2": 0.998,
        "machine_id": 178,
        "inet_down": 912.3,
        "inet_up": 800.1,
        "cuda_max_good": 12.8,
    },
    {
        "id": 7002,
        "gpu_name": "H100 SXM",
        "num_gpus": 8,
        "gpu_ram": 81559,
        "cpu_cores": None,
        "cpu_cores_effective": 192.0,
        "cpu_ram": 2064000,
        "disk_space": 12000.0,
        "dph_base": 15.2,
        "dph_total": 15.210416666666667,
        "min_bid": None,
        "storage_cost": 0.15,
        "geolocation": "Washington, US",
        "reliability": 0.96,
        "reliability2": 0.96,
        "machine_id": 179,
    },
    {
        "id": 7003,
        "gpu_name": "Q RTX 8000",
        "num_gpus": 2,
        "gpu_ram": 46080,
        "dph_total": None,
        "geolocation": "Sweden, SE",
    },
]


class FakeVast(FakeVendor):
    """Instances of one account. `leftover`: the next refusal of an order makes a stopped instance all the same."""

    kind = "vast"
    credentials = {"api_key": "0123456789abcdef0123456789abcdef0123456789abcdefSECRET"}
    order_options = {"image": "vastai/base-image:cuda", "disk_gb": "50"}
    page_size = 25
    has_retry_after = True  # by the threshold that it names
    leftover = False

    def problems(self, request):
        return openapi("vast/openapi.yaml", repair=mended).problems(request)

    def default_facts(self):
        return {"gpu": "RTX 4090"}

    def preempt(self, machine_id):
        super().preempt(machine_id)
        self.machines[machine_id].status = "outbid"

    def is_authorised(self, request):
        return request.headers.get("authorization") == f"Bearer {self.credentials['api_key']}"

    def is_write(self, request):
        return request.method in {"PUT", "DELETE"}

    def is_create(self, request):
        return request.method == "PUT" and bool(ASK.fullmatch(request.url.path))

    def key_refused(self, request):
        status = 404 if request.url.path in {"/api/v0/bundles/", "/api/v0/charges/"} else 401
        return failed(status, "auth_error", "Invalid user key")

    def too_many(self, request):
        return httpx.Response(429, text="API requests too frequent: endpoint threshold=4.5")

    def no_capacity(self, request):
        ask_id = ASK.fullmatch(request.url.path)[1]
        words = f"error 404/3603: no_such_ask Instance type by id {ask_id} is not available."
        body = {"success": False, "error": "invalid_args", "msg": words, "ask_id": int(ask_id)}
        if self.leftover:
            made = self.add("", status="stopped", is_spot=True)
            body |= {"error": "no_such_ask", "new_contract": int(made.id)}
        return httpx.Response(404, json=body)

    def answer(self, request):
        path = request.url.path
        if path == "/api/v1/instances/":
            return self._list(request.url.params)
        if path == "/api/v0/users/current/":
            return httpx.Response(200, text=USER)
        if path == "/api/v0/bundles/":
            return self._search(json.loads(request.content))
        if path == "/api/v0/charges/":
            return charges(request.url.params)
        if match := ASK.fullmatch(path):
            return self._order(int(match[1]), json.loads(request.content))
        if match := INSTANCE.fullmatch(path):
            return self._one(request, match[2], is_reboot=bool(match[1]))
        return httpx.Response(404, text="<html>Not found</html>")

    def _list(self, params):
        filters = json.loads(params.get("select_filters", "{}"))
        if wrong := set(filters) - {"label", "id", "actual_status", "gpu_name"}:
            return failed(400, "invalid_request", f"Error in query parameters: {wrong} is not a valid search key")
        found = [machine for machine in self.listed() if is_match(machine.name, filters.get("label"))]
        after = int(base64.b64decode(params["after_token"])) if "after_token" in params else 0
        limit = min(int(params.get("limit", "25")), self.page_size)
        page = [machine for machine in found if int(machine.id) > after][:limit]
        more = bool(page) and int(page[-1].id) < max(int(machine.id) for machine in found)
        body = {
            "success": True,
            "instances_found": len(page),
            "total_instances": len(found),
            "next_token": base64.b64encode(page[-1].id.encode()).decode() if more else None,
            "instances": [self.instance(machine) for machine in page],
        }
        return httpx.Response(200, json=body)

    def _search(self, body):
        for name, value in body.items():
            if isinstance(value, dict) and set(value) - OPERATORS:
                return failed(400, "invalid_request", f"unknown operator for {name}")
        least = body.get("reliability", {}).get("gte", 0)
        found = [
            ask
            for ask in ASKS
            if ask["id"] > body.get("id", {}).get("gt", 0)
            and ask.get("reliability", 1) >= least
            and in_country(ask, body)
        ]
        return httpx.Response(200, json={"offers": found[: body.get("limit", 64)]})

    def _order(self, ask_id, body):
        ask = next((each for each in ASKS if each["id"] == ask_id), None)
        if set(body) - ORDER_KEYS or not isinstance(body.get("env"), dict) or len(body["onstart"]) > 4048:
            return failed(400, "invalid_args", f"error 400/3467: Invalid args: {sorted(body)}")
        if ask is None:
            return failed(
                410, "no_such_ask", f"error 410/3907: no_such_ask Instance type {ask_id} is no longer available."
            )
        if "price" in body and body["price"] < ask["min_bid"]:
            return failed(400, "invalid_price", "error 400/3472: invalid_price the bid is below the minimum")
        machine = FakeMachine(
            id=self.next_id(),
            name=body["label"],
            gpu=ask["gpu_name"],
            gpu_count=ask["num_gpus"],
            is_spot="price" in body,
        )
        machine.facts = {"bid": body.get("price")}
        self.machines[machine.id] = machine
        return httpx.Response(
            200, json={"success": True, "new_contract": int(machine.id), "instance_api_key": "k-SECRET"}
        )

    def _one(self, request, machine_id, *, is_reboot):
        machine = self.machines.get(machine_id)
        if request.method == "GET":
            return httpx.Response(200, json={"instances": self.instance(machine) if machine else None})
        if machine is None:
            return (
                failed(404, "not_found", "Instance not found")
                if not is_reboot
                else failed(400, "invalid_args", "invalid instance_id")
            )
        if request.method == "DELETE":
            del self.machines[machine_id]
        elif is_reboot:
            machine.status = "starting"
        else:
            machine.status = {"stopped": "stopping", "running": "starting"}[json.loads(request.content)["state"]]
        return httpx.Response(200, json={"success": True})

    def instance(self, machine):
        """Return a machine as the API shows it."""
        actual, wanted, current, following = STATES[machine.status]
        runs = actual == "running"
        cost = machine.facts.get("bid") or 0.4
        return {
            "id": int(machine.id),
            "actual_status": machine.raw or actual,
            "intended_status": wanted,
            "cur_state": current,
            "next_state": following,
            "label": machine.name or None,
            "image_uuid": "vastai/base-image:cuda",
            "image_runtype": "ssh ssh_direct",
            "extra_env": [["HF_TOKEN", "hf_SECRETSECRET"]],
            "onstart": "echo joined",
            "jupyter_token": "df77e27085bd4b3bd5d9024bdefb9e6df614b27adb0689e9d8f066fce5e01f0c",
            "status_msg": "success, running vastai/base-image\n",
            "public_ipaddr": "203.0.113.45 \n",
            "ssh_host": "ssh6.vast.ai",
            "ssh_port": 10600,
            "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "20000"}]} if runs else {},
            "machine_id": 178,
            "host_id": 7,
            "start_date": machine.created_at.timestamp(),
            "end_date": 1893456000.0,
            "cpu_cores": 64,
            "cpu_cores_effective": 32.0,
            "cpu_ram": 128576,
            "gpu_name": machine.gpu,
            "gpu_ram": 24564,
            "num_gpus": machine.gpu_count,
            "disk_space": 50.0,
            "geolocation": "California, US",
            "verification": "verified",
            "reliability2": 0.998,
            "is_bid": machine.is_spot,
            "min_bid": 0.16,
            "dph_base": cost,
            "dph_total": round(cost + 0.0104, 6),
            "storage_cost": 0.15,
            "storage_total_cost": 0.0104,
            "instance": {"gpuCostPerHour": cost if current == "running" else 0, "diskHour": 0.0104, "totalHour": cost},
        }


def failed(status, code, words):
    """Return a failure in Vast.ai's usual form."""
    return httpx.Response(status, json={"success": False, "error": code, "msg": words})


def is_match(value, condition):
    """Say whether a value passes a filter."""
    return condition is None or value == condition["eq"]


def in_country(ask, body):
    """Say whether an ask lies in one of the countries that are wanted."""
    wanted = body.get("geolocation", {}).get("in")
    return wanted is None or ask["geolocation"].rpartition(" ")[2] in wanted


def charges(params):
    """Return what was billed, in two pages; the range of days is compulsory."""
    day = json.loads(params["select_filters"]).get("day", {})
    if not {"gte", "lte"} <= set(day):
        return failed(400, "", "Must provide both 'day' gte and lte filters for instance charges")
    records = CHARGES if day["gte"] <= DAY <= day["lte"] else []
    is_first = "after_token" not in params
    page, token = (records[:1], '"cGFnZTI="' if records[1:] else "null") if is_first else (records[1:], "null")
    text = f'{{"success": true, "count": {len(page)}, "next_token": {token}, "results": [{",".join(page)}]}}'
    return httpx.Response(200, text=text)


def mended(document):
    """Mend what is known to be wrong in the specification, which is written by hand."""
    order = document["paths"]["/api/v0/asks/{id}"]["put"]["requestBody"]["content"]["application/json"]["schema"]
    # The server and the vendor's SDK take a map ("-p 8000:8000": "1"), not Docker's flags in one string.
    order["properties"]["env"] = {"type": "object", "additionalProperties": {"type": "string"}}
    search = document["paths"]["/api/v0/bundles"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    # "Two elements" is meant of each pair of a field and a direction; it stands at the list of pairs.
    pairs = search["properties"]["order"]
    pairs["items"] |= {"minItems": pairs.pop("minItems"), "maxItems": pairs.pop("maxItems")}


USER = (
    '{"id": 4711, "email": "ops@example.com", "balance": 41.070000000000001, "ssh_key": "ssh-ed25519 AAAA", "sid": "9"}'
)
DAY = int(datetime(2026, 11, 29, tzinfo=UTC).timestamp())
CHARGES = [
    f'{{"start": {DAY}, "end": {DAY + 86400}, "type": "instance", "source": "instance-101", "amount": 9.850, "items": []}}',
    f'{{"start": {DAY}, "end": {DAY + 86400}, "type": "volume", "source": "volume-55", "amount": 0.1, "items": []}}',
]
