"""A Verda project, as API v1 shows it."""

import itertools
import json
import re

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor

RAW = {
    "provisioning": "provisioning",
    "starting": "provisioning",
    "running": "running",
    "stopping": "running",
    "stopped": "offline",
    "terminating": "deleting",
    "taken": "discontinued",
}
ONE = re.compile(r"/v1/(instances|scripts)/([^/]+)")
ORDER_KEYS = {
    "instance_type",
    "image",
    "hostname",
    "description",
    "ssh_key_ids",
    "location_code",
    "contract",
    "pricing",
    "startup_script_id",
    "is_spot",
    "os_volume",
    "volumes",
    "existing_volumes",
    "coupon",
    "tags",
}
ACTIONS = {"start": ({"stopped"}, "starting"), "shutdown": ({"running"}, "stopping")}
SSH_KEY = "12345dc1-a5d2-4972-ae4e-d429115d055b"


def machine_type(name, model, gpus, memory_gb, price, spot):
    """Return a type as the catalogue shows it: prices are text, of the whole machine; memory is of all cards."""
    return {
        "id": "c01dd00d-0000-480b-ae4e-d429115d055b",
        "instance_type": name,
        "model": model,
        "name": f"{model} {memory_gb // max(gpus, 1)}GB" if gpus else "AMD EPYC",
        "cpu": {"description": "30 CPU", "number_of_cores": 30},
        "gpu": {"description": f"{gpus}x {model}" if gpus else "", "number_of_gpus": gpus},
        "gpu_memory": {"description": "", "size_in_gigabytes": memory_gb},
        "memory": {"description": "120GB RAM", "size_in_gigabytes": 120},
        "storage": {"description": "dynamic"},
        "price_per_hour": price,
        "spot_price": spot,
        "currency": "usd",
        "manufacturer": "NVIDIA",
    }


TYPES = {
    each["instance_type"]: each
    for each in (
        machine_type("1H100.80S.30V", "H100 SXM5", 1, 80, "3.95", "1.70"),
        machine_type("2A6000.20V", "RTX A6000", 2, 96, "1.98", "0.70"),
        machine_type("1V100.6V", "Tesla V100", 1, 16, "0.89", None),
        machine_type("CPU.120V.480G", "CPU Node", 0, 0, "3.00", "1.50"),
    )
}
AVAILABLE = {
    False: {"FIN-01": ["1H100.80S.30V", "CPU.120V.480G"], "ICE-01": ["1H100.80S.30V", "2A6000.20V"]},
    True: {"FIN-01": ["2A6000.20V"], "ICE-01": []},
}


class FakeVerda(FakeVendor):
    """Instances and start-up scripts of one project. token: the one that is valid now."""

    kind = "verda"
    credentials = {"client_id": "Kt1_SECRETCLIENTID", "client_secret": "uXo8SECRETSECRETSECRET"}
    order_options = {"image": "ubuntu-24.04-cuda-12.8-open-docker", "ssh_key": SSH_KEY, "disk_gb": "50"}

    def __init__(self):
        super().__init__()
        self.scripts = {}
        self.tokens = itertools.count(1)
        self.token = None
        self.currency = "usd"

    def next_id(self):
        return f"deadc0de-a5d2-4972-ae4e-{super().next_id():>012}"

    def default_facts(self):
        return {"gpu": "1H100.80S.30V"}

    def preempt(self, machine_id):
        super().preempt(machine_id)
        self.machines[machine_id].status = "taken"

    def is_authorised(self, request):
        if request.url.path == "/v1/oauth2/token":
            body = json.loads(request.content)
            return body == {"grant_type": "client_credentials", **self.credentials}
        return self.token is not None and request.headers.get("authorization") == f"Bearer {self.token}"

    def is_write(self, request):
        # What the switches of lost and broken answers mean is the machine; scripts have tests of their own.
        return request.url.path == "/v1/instances" and request.method in {"POST", "PUT"}

    def is_create(self, request):
        return request.url.path == "/v1/instances" and request.method == "POST"

    def key_refused(self, request):
        return failed(401, "unauthorized_request", "Access token is missing or invalid")

    def too_many(self, request):
        return failed(429, "too_many_requests", "Too many requests")

    def no_capacity(self, request):
        return failed(400, "invalid_request", "Not enough capacity for this instance type in the location")

    def answer(self, request):
        path, body = request.url.path, json.loads(request.content) if request.content else None
        if path == "/v1/oauth2/token":
            self.token = f"token-{next(self.tokens)}-SECRET"
            return shown(
                {
                    "access_token": self.token,
                    "refresh_token": "r",
                    "scope": "cloud-api-v1",
                    "token_type": "Bearer",
                    "expires_in": 3600,
                }
            )
        if path == "/v1/instances":
            return {"GET": self._list, "POST": self._order, "PUT": self._act}[request.method](body)
        if path == "/v1/scripts":
            self.scripts[script_id := f"5c17-{len(self.scripts)}-{next(self._ids)}"] = body
            return httpx.Response(201, text=script_id)
        if match := ONE.fullmatch(path):
            return self._one(request.method, *match.groups())
        lists = {
            "/v1/instance-types": lambda: self._types(request.url.params),
            "/v1/instance-availability": lambda: availability(request.url.params),
            "/v1/ssh-keys": lambda: [{"id": SSH_KEY, "name": "deploy", "key": "ssh-ed25519 AAAA"}],
            "/v1/images": lambda: [
                {"id": "0888da25", "name": "Ubuntu 24.04 + CUDA 12.8", "image_type": self.order_options["image"]}
            ],
            "/v1/balance": lambda: {"amount": 120.5, "currency": self.currency},
        }
        return shown(lists[path]()) if path in lists else failed(404, "not_found", "Not found")

    def _types(self, params):
        return [{**each, "currency": params["currency"]} for each in TYPES.values()]

    def _list(self, _body):
        return shown([self.instance(machine) for machine in self.listed()])

    def _one(self, method, what, found_id):
        if what == "scripts":
            return (
                httpx.Response(200)
                if self.scripts.pop(found_id, None)
                else failed(404, "not_found", "Script not found")
            )
        machine = self.machines.get(found_id)
        return shown(self.instance(machine)) if machine else failed(400, "invalid_request", "Invalid instance id")

    def _order(self, body):
        if wrong := set(body) - ORDER_KEYS:
            return failed(400, "invalid_request", f"property {min(wrong)} should not exist")
        if body["ssh_key_ids"] != [SSH_KEY] or body["startup_script_id"] not in self.scripts:
            return failed(404, "not_found", "SSH key or script not found")
        if body["instance_type"] not in AVAILABLE[body["is_spot"]].get(body["location_code"], []):
            return self.no_capacity(None)
        machine = FakeMachine(
            id=self.next_id(), name=body["hostname"], gpu=body["instance_type"], is_spot=body["is_spot"], facts=body
        )
        self.machines[machine.id] = machine
        return httpx.Response(202, text=machine.id)

    def _act(self, body):
        if set(body) - {"action", "id", "volume_ids", "delete_permanently"}:
            return failed(400, "invalid_request", "unknown property")
        machine = self.machines.get(body["id"][0])
        if machine is None:
            return failed(400, "invalid_request", "Invalid instance id")
        if body["action"] == "delete":
            machine.status = "terminating"
        else:
            needed, following = ACTIONS[body["action"]]
            if machine.status not in needed:
                return failed(403, "forbidden_action", f"Can't {body['action']} a {RAW[machine.status]} instance")
            machine.status = following
        return httpx.Response(202, json=[{"action": body["action"], "instanceId": machine.id, "status": "success"}])

    def instance(self, machine):
        """Return a machine as the API shows it: its price is for one GPU."""
        kind = TYPES[machine.gpu]
        total = kind["spot_price" if machine.is_spot else "price_per_hour"]
        units = kind["gpu"]["number_of_gpus"] or kind["cpu"]["number_of_cores"]
        return {
            "id": machine.id,
            "ip": "203.0.113.77" if machine.status in {"running", "stopped"} else None,
            "status": machine.raw or RAW[machine.status],
            "created_at": machine.created_at.isoformat().replace("+00:00", "Z"),
            "cpu": kind["cpu"],
            "gpu": kind["gpu"],
            "gpu_memory": kind["gpu_memory"],
            "memory": kind["memory"],
            "storage": kind["storage"],
            "hostname": machine.name,
            "description": machine.name,
            "location": machine.facts.get("location_code", "ICE-01"),
            "price_per_hour": round(float(total) / units, 4),
            "is_spot": machine.is_spot,
            "instance_type": machine.gpu,
            "image": "ubuntu-24.04-cuda-12.8-open-docker",
            "startup_script_id": machine.facts.get("startup_script_id"),
            "ssh_key_ids": [SSH_KEY],
            "os_volume_id": "46fc0247-8f65-4d8a-ad73-852a8b3dc1d3",
            "jupyter_token": "jt-SECRETSECRET",
            "contract": "SPOT" if machine.is_spot else "PAY_AS_YOU_GO",
            "pricing": "FIXED_PRICE",
            "volume_ids": ["46fc0247-8f65-4d8a-ad73-852a8b3dc1d3"],
            "tags": [],
        }


def shown(body):
    """Return a good answer."""
    return httpx.Response(200, json=body)


def failed(status, code, words):
    """Return a failure in Verda's form."""
    return httpx.Response(status, json={"code": code, "message": words})


def availability(params):
    """Return what can be had by location; this server knows one of the two names of the parameter."""
    kinds = AVAILABLE[params.get("is_spot") == "true"]
    return [{"location_code": place, "availabilities": names} for place, names in kinds.items()]
