"""A Lambda Cloud account, as API v1 shows it."""

import json
import re

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor
from tests.providers.spec import openapi

RAW = {"provisioning": "booting", "starting": "booting", "running": "active", "terminating": "terminating"}
PATH = "/api/v1"
INSTANCE = re.compile(rf"{PATH}/instances/([^/]+)")
LAUNCH_KEYS = {
    "region_name",
    "instance_type_name",
    "ssh_key_names",
    "name",
    "hostname",
    "image",
    "user_data",
    "file_system_names",
    "file_system_mounts",
    "tags",
    "firewall_rulesets",
}
TYPES = {
    "cpu_4x_general": ("4x CPU General (16 GiB)", "N/A", 20, 4, 16, 100, 0, ["us-east-1"]),
    "gpu_8x_v100": ("8x Tesla V100 (16 GB)", "Tesla V100 (16 GB)", 440, 92, 448, 6041, 8, []),
    "gpu_1x_a10": ("1x A10 (24 GB PCIe)", "A10 (24 GB PCIe)", 75, 30, 200, 1400, 1, ["us-east-1", "us-west-1"]),
    "gpu_8x_h100_sxm5": ("8x H100 (80 GB SXM5)", "H100 (80 GB SXM5)", 2392, 208, 1800, 22528, 8, ["us-west-3"]),
}
REGIONS = {"us-east-1": "Virginia, USA", "us-west-1": "California, USA", "us-west-3": "Utah, USA"}
ACTIONS = ("migrate", "rebuild", "restart", "cold_reboot", "terminate")
SSH_KEYS = ["deploy", "laptop"]


class FakeLambda(FakeVendor):
    """Instances of one account."""

    kind = "lambda"
    credentials = {"api_key": "secret_fleet_0123456789abcdef.SECRET"}
    order_options = {"ssh_key": "deploy", "image_family": "lambda-stack-24-04"}

    def problems(self, request):
        return openapi("lambda/openapi-1.10.0.json").problems(request)

    def next_id(self):
        return f"0920582c7ff041399e34823a0be{super().next_id():>05}"

    def default_facts(self):
        return {"gpu": "gpu_1x_a10"}

    def is_authorised(self, request):
        return request.headers.get("authorization") == f"Bearer {self.credentials['api_key']}"

    def is_write(self, request):
        return request.method != "GET"

    def is_create(self, request):
        return request.url.path == f"{PATH}/instance-operations/launch"

    def key_refused(self, request):
        return error(401, "global/invalid-api-key", "API key was invalid, expired, or deleted.", "Check your API key.")

    def too_many(self, request):
        return httpx.Response(429, text="Too Many Requests")  # no header, no envelope

    def no_capacity(self, request):
        return error(
            400,
            "instance-operations/launch/insufficient-capacity",
            "Not enough capacity to fulfill launch request.",
            "Choose an instance type with more availability, or try again later.",
        )

    def answer(self, request):
        path = request.url.path
        if path.startswith(f"{PATH}/instance-operations/"):
            return self._operate(path.rpartition("/")[2], json.loads(request.content))
        if match := INSTANCE.fullmatch(path):
            machine = self.machines.get(match[1])
            return data(self.instance(machine)) if machine else unknown("Specified instance does not exist.")
        lists = {
            f"{PATH}/instances": lambda: [self.instance(machine) for machine in self.listed()],
            f"{PATH}/instance-types": lambda: {name: type_entry(name) for name in TYPES},
            f"{PATH}/ssh-keys": lambda: [
                {"id": name, "name": name, "public_key": "ssh-ed25519 AAAA"} for name in SSH_KEYS
            ],
            f"{PATH}/images": lambda: [IMAGE, {**IMAGE, "id": "22c0"}],
        }
        return data(lists[path]()) if path in lists else unknown("no such route")

    def _operate(self, operation, body):
        if operation == "launch":
            return self._launch(body)
        machines = [self.machines.get(each) for each in body["instance_ids"]]
        if None in machines:
            return unknown("Specified instance does not exist.")
        for machine in machines:
            machine.status = {"restart": "starting", "terminate": "terminating"}[operation]
        return data({f"{operation.removesuffix('e')}ed_instances": [self.instance(machine) for machine in machines]})

    def _launch(self, body):
        if wrong := set(body) - LAUNCH_KEYS:
            return error(400, "global/invalid-parameters", f"Invalid request data: {wrong}", "")
        if len(body["ssh_key_names"]) != 1 or not set(body["ssh_key_names"]) <= set(SSH_KEYS):
            return unknown("SSH key was not found.", status=400)
        if body["region_name"] not in TYPES[body["instance_type_name"]][-1]:
            return self.no_capacity(None)
        machine = FakeMachine(
            id=self.next_id(), name=body["name"], gpu=body["instance_type_name"], facts={"region": body["region_name"]}
        )
        self.machines[machine.id] = machine
        return data({"instance_ids": [machine.id]})

    def instance(self, machine):
        """Return a machine as the API shows it."""
        status = machine.raw or RAW[machine.status]
        can = {"available": True}
        cannot = {"available": False, "reason_code": "vm-has-not-launched", "reason_description": "not yet"}
        found = {
            "id": machine.id,
            "name": machine.name,
            "status": status,
            "ssh_key_names": ["deploy"],
            "file_system_names": [],
            "region": {"name": machine.facts.get("region", "us-east-1"), "description": "Virginia, USA"},
            "instance_type": type_entry(machine.gpu)["instance_type"],
            "hostname": "203-0-113-9",
            "jupyter_token": "03b7d30d9d3e4d8fa41657bc0d478c1b",
            "jupyter_url": "https://jupyter-24.example/?token=03b7d30d9d3e4d8fa41657bc0d478c1b",
            "actions": dict.fromkeys(ACTIONS, can if status == "active" else cannot),
        }
        if status == "active":
            found |= {"ip": "203.0.113.9", "private_ip": "10.0.2.100"}
        return found


def data(value):
    """Return a good answer."""
    return httpx.Response(200, json={"data": value})


def error(status, code, message, suggestion):
    """Return an error in Lambda's envelope."""
    return httpx.Response(status, json={"error": {"code": code, "message": message, "suggestion": suggestion}})


def unknown(message, status=404):
    """Return what Lambda says of something that it does not know."""
    return error(status, "global/object-does-not-exist", message, "Check the identifier.")


def type_entry(name):
    """Return an instance type with its regions."""
    description, gpu, cents, vcpus, memory, storage, gpus, regions = TYPES[name]
    return {
        "instance_type": {
            "name": name,
            "description": description,
            "gpu_description": gpu,
            "price_cents_per_hour": cents,
            "specs": {"vcpus": vcpus, "memory_gib": memory, "storage_gib": storage, "gpus": gpus},
        },
        "regions_with_capacity_available": [{"name": region, "description": REGIONS[region]} for region in regions],
    }


IMAGE = {
    "id": "21c0",
    "created_time": "2025-07-07T15:20:25.091000+00:00",
    "updated_time": "2025-08-20T00:46:42.725000+00:00",
    "name": "Lambda Stack 24.04",
    "description": "GPU image with CUDA",
    "family": "lambda-stack-24-04",
    "version": "24.4.2",
    "architecture": "x86_64",
    "region": {"name": "us-east-1", "description": "Virginia, USA"},
}
