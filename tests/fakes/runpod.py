"""A RunPod account, as REST API v2 shows it."""

import json
import re

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor
from tests.providers.spec import openapi

RAW = {
    "provisioning": "PROVISIONING",
    "starting": "STARTING",
    "running": "RUNNING",
    "stopped": "EXITED",
    "stopping": "EXITED",
}
ACTIONS = {
    "PROVISIONING": ["stop", "terminate"],
    "STARTING": ["stop", "terminate"],
    "RUNNING": ["stop", "restart", "terminate"],
    "EXITED": ["start", "terminate"],
    "ERROR": ["start", "terminate"],
}
GPU = "NVIDIA GeForce RTX 4090"
POD_PATH = re.compile(r"/v2/pods/([^/]+)(/action)?")
CREATE_KEYS = {"name", "cloud", "gpu", "image", "disk", "ports", "startSsh", "env", "args", "dataCenterIds", "mounts"}


class FakeRunPod(FakeVendor):
    """Pods of one account."""

    kind = "runpod"
    credentials = {"api_key": "rpa_0123456789SECRET"}
    order_options = {"image": "runpod/pytorch:2.8", "disk_gb": "50", "volume_gb": "20"}
    has_retry_after = True

    def problems(self, request):
        return openapi("runpod/openapi-v2.json").problems(request)

    def next_id(self):
        return f"pod{super().next_id()}"

    def default_facts(self):
        return {"gpu": GPU}

    def is_authorised(self, request):
        return request.headers.get("authorization") == f"Bearer {self.credentials['api_key']}"

    def is_write(self, request):
        return request.method != "GET"

    def is_create(self, request):
        return request.method == "POST" and request.url.path == "/v2/pods"

    def key_refused(self, request):
        return problem(401, "Unauthorized", "invalid API key")

    def too_many(self, request):
        response = problem(429, "Too Many Requests", "rate limit exceeded for the minute window")
        response.headers["Retry-After"] = "12"
        return response

    def no_capacity(self, request):
        return problem(
            400, "Bad Request", "There are no longer any instances available with the requested specifications."
        )

    def answer(self, request):
        path = request.url.path
        if path == "/v2/catalog/gpus":
            return httpx.Response(200, json={"gpus": [catalogue_4090(request.url.params), CATALOG_NO_PRICE]})
        if path == "/v2/billing/pods":
            return httpx.Response(200, text=BILLING)
        if path == "/v2/pods":
            return self._create(json.loads(request.content)) if request.method == "POST" else self._list()
        if match := POD_PATH.fullmatch(path):
            return self._one(request, match[1])
        return problem(404, "Not Found", "no such route")

    def _list(self):
        return httpx.Response(200, json={"pods": [self.pod(machine) for machine in self.listed()]})

    def _create(self, body):
        if unknown := set(body) - CREATE_KEYS:
            return problem(422, "Unprocessable Entity", f"unexpected property {unknown}")
        machine = FakeMachine(
            id=self.next_id(), name=body["name"], gpu=body["gpu"]["id"], gpu_count=body["gpu"]["count"], facts=body
        )
        self.machines[machine.id] = machine
        return httpx.Response(201, json=self.pod(machine))

    def _one(self, request, pod_id):
        machine = self.machines.get(pod_id)
        if machine is None:
            return problem(404, "Not Found", "pod not found")
        if request.method == "GET":
            return httpx.Response(200, json=self.pod(machine))
        action = "terminate" if request.method == "DELETE" else json.loads(request.content)["action"]
        if action not in self.pod(machine)["actions"]:
            return problem(409, "Conflict", f"cannot {action} a pod that is {self.pod(machine)['status']}")
        return self._act(machine, action)

    def _act(self, machine, action):
        if action == "terminate":
            del self.machines[machine.id]
            return httpx.Response(204)
        if action == "start" and not self.has_capacity:
            return problem(400, "Bad Request", "There are not enough free GPUs on the host machine to start this pod.")
        machine.status = {"stop": "stopped", "start": "starting", "restart": "starting"}[action]
        return httpx.Response(200, json=self.pod(machine))

    def pod(self, machine):
        """Return a machine as the API shows it."""
        status = machine.raw or RAW[machine.status]
        running = status == "RUNNING"
        direct = {"host": "203.0.113.7", "port": 43210, "username": "root", "command": "ssh root@203.0.113.7 -p 43210"}
        return {
            "id": machine.id,
            "name": machine.name,
            "status": status,
            "actions": ACTIONS.get(status, []),
            "image": "runpod/pytorch:2.8",
            "args": "",
            "disk": 50,
            "mounts": {},
            "ports": ["22/tcp"],
            "env": {},
            "registry": None,
            "gpu": {"id": machine.gpu, "count": machine.gpu_count},
            "cloud": "SECURE",
            "dataCenterId": "US-TX-3",
            "cudaVersion": "12.8",
            "ssh": {"proxy": None, "direct": direct if running else None},
            "template": None,
            "cost": 0.0 if status == "EXITED" else 0.44 * machine.gpu_count,
            "locked": False,
            "globalNetworking": {"enabled": False},
            "runtime": {"uptime": 60, "gpus": [], "ports": []} if running else None,
            "createdAt": machine.created_at.isoformat(),
            "startedAt": machine.created_at.isoformat() if running else None,
        }


def problem(status, title, detail):
    """Return an RFC 9457 problem document."""
    body = json.dumps({"title": title, "status": status, "detail": detail})
    return httpx.Response(status, text=body, headers={"Content-Type": "application/problem+json"})


def catalogue_4090(params):
    """Return a type whose stock depends on the cloud and the count that are asked for; both have defaults."""
    cloud, count = params.get("cloud", "SECURE"), int(params.get("count", "1"))
    stock = {("SECURE", 1): "HIGH", ("SECURE", 2): "MEDIUM", ("SECURE", 4): "LOW", ("COMMUNITY", 1): "LOW"}
    return {**CATALOG_4090, "availability": stock.get((cloud, count), "NONE")}


CATALOG_4090 = {
    "id": GPU,
    "name": "RTX 4090",
    "pool": "ADA_24",
    "manufacturer": "NVIDIA",
    "memory": 24,
    "secure": True,
    "community": True,
    "price": {"secure": 0.44, "community": 0.31, "serverless": 1.1},
    "maxCount": {"secure": 8, "community": 4},
    "dataCenters": [],
}
CATALOG_NO_PRICE = {
    "id": "NVIDIA Z9000",
    "name": "Z9000",
    "pool": None,
    "manufacturer": "NVIDIA",
    "memory": 512,
    "secure": True,
    "community": False,
    "price": {"secure": 0, "community": 0},
    "maxCount": {"secure": 1, "community": 0},
    "availability": "NONE",
    "dataCenters": [],
}
BILLING = """{"records": [{"podId": "pod101", "startTime": "2026-11-29T00:00:00Z", "endTime": "2026-11-30T00:00:00Z",
 "totalAmount": 10.560000000000001, "gpuAmount": 10.5, "cpuAmount": 0, "diskAmount": 0.06}], "metadata": {}}"""
