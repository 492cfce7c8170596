"""An Alibaba Cloud account, as ECS, STS and BSS show it: RPC calls signed with ACS3, one server for each region."""

import base64
import hashlib
import hmac
import json
from datetime import timedelta
from urllib.parse import quote

import httpx

from tests.fakes.aliyun_wire import (
    AWAY,
    HOME,
    PERIOD_FACTOR,
    PRICES,
    RAW,
    SPECS,
    TYPES,
    USER_DATA_LIMIT,
    WRITES,
    ZONES,
    created,
    numbered,
    query_of,
    refused,
    region_of,
    snake,
)
from tests.fakes.vendor import FakeMachine, FakeVendor
from tests.providers.cloud_specs import aliyun_problems


class FakeAliyun(FakeVendor):
    """ECS instances of one account in two regions. `may`: what the key's policy does not forbid."""

    kind = "aliyun"
    credentials = {"access_key_id": "LTAI5tFAKEFAKEFAKE", "access_key_secret": "sEcReTfAkEsEcReTfAkE0123456789"}
    options = {"regions": f"{HOME}, {AWAY}", "site": "china"}
    order_options = {
        "image": "ubuntu_24_04_x64_100G_gpu.vhd",
        "security_group": "sg-bp1",
        "vswitch": "vsw-bp1",
        "key_pair": "ops",
        "disk_kind": "cloud_essd",
        "disk_gb": "200",
        "bandwidth_mbps": "20",
        "auto_renew": "no",
    }
    page_size = 10

    def __init__(self):
        super().__init__()
        self.forbidden = set()
        self.nonces = set()
        self.tokens = {}
        self.images = {}

    def next_id(self):
        return f"{HOME}:i-bp{super().next_id()}"

    def default_facts(self):
        return {"gpu": "ecs.gn7i-c8g1.2xlarge"}

    def problems(self, request):
        name = SPECS.get(request.headers["x-acs-version"])
        return aliyun_problems(name, request.headers["x-acs-action"], query_of(request)) if name else []

    def sent(self, action):
        """Return the parameters of every call of an action so far."""
        return [query_of(request) for request in self.requests if request.headers["x-acs-action"] == action]

    def is_authorised(self, request):
        """Recompute the signature from what came over the wire, and refuse a nonce that came before."""
        kind, _, rest = request.headers["authorization"].partition(" ")
        given = dict(part.split("=", 1) for part in rest.split(","))
        nonce = request.headers["x-acs-signature-nonce"]
        if (
            kind != "ACS3-HMAC-SHA256"
            or given["Credential"] != self.credentials["access_key_id"]
            or nonce in self.nonces
        ):
            return False
        self.nonces.add(nonce)
        names = given["SignedHeaders"].split(";")
        needed = {"host", *(name for name in request.headers if name.startswith("x-acs-"))}
        body = hashlib.sha256(request.content).hexdigest()
        if not needed <= set(names) or body != request.headers["x-acs-content-sha256"]:
            return False
        query = "&".join(f"{quote(k, safe='~')}={quote(v, safe='~')}" for k, v in sorted(query_of(request).items()))
        head = "".join(f"{name}:{request.headers[name]}\n" for name in names)
        text = f"{request.method}\n{request.url.path}\n{query}\n{head}\n{given['SignedHeaders']}\n{body}"
        to_sign = f"{kind}\n{hashlib.sha256(text.encode()).hexdigest()}".encode()
        right = hmac.new(self.credentials["access_key_secret"].encode(), to_sign, "sha256").hexdigest()
        return right == given["Signature"]

    def is_write(self, request):
        return request.headers["x-acs-action"] in WRITES and query_of(request).get("DryRun") != "true"

    def is_create(self, request):
        return request.headers["x-acs-action"] == "RunInstances" and self.is_write(request)

    def key_refused(self, request):
        return refused(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")

    def too_many(self, request):
        return refused(400, "Throttling.User", "Request was denied due to user flow control.")

    def no_capacity(self, request):
        return refused(403, "OperationDenied.NoStock", "The requested resource is sold out in the specified zone.")

    def answer(self, request):
        action, params = request.headers["x-acs-action"], query_of(request)
        if action in self.forbidden and action == "DescribeInstances" and params.get("DryRun") != "true":
            return httpx.Response(200, json={"Instances": {"Instance": []}, "NextToken": ""})
        if action in self.forbidden:
            return refused(403, "Forbidden.RAM", "User not authorized to operate on the specified resource.")
        if params.get("DryRun") == "true":
            return self._dry(action, params)
        region = region_of(request)
        handler = getattr(self, f"_{snake(action)}", None)
        if handler is None:
            return refused(404, "InvalidAction.NotFound", f"Specified api {action} is not found.")
        if params.get("RegionId", region) != region:
            return refused(404, "InvalidRegionId.NotFound", "The specified RegionId does not exist.")
        return handler(region, params)

    def _dry(self, action, params):
        if action == "RunInstances" and "ImageId" not in params:
            return refused(400, "MissingParameter", "The input parameter ImageId is mandatory.")
        return refused(400, "DryRunOperation", "Request validation has been passed with DryRun flag set.")

    def _describe_instances(self, region, params):
        found = [machine for machine in self.listed() if machine.id.startswith(f"{region}:")]
        if "InstanceIds" in params:
            wanted = json.loads(params["InstanceIds"])
            found = [machine for machine in found if machine.id.partition(":")[2] in wanted]
        if "InstanceName" in params:
            found = [machine for machine in found if machine.name == params["InstanceName"]]
        start = int(params.get("NextToken") or 0)
        end = start + min(int(params["MaxResults"]), self.page_size)
        token = str(end) if end < len(found) else ""
        shown = [self.instance(machine) for machine in found[start:end]]
        return httpx.Response(200, json={"Instances": {"Instance": shown}, "NextToken": token, "TotalCount": 0})

    def _run_instances(self, region, params):
        if len(base64.b64decode(params["UserData"])) > USER_DATA_LIMIT:
            return refused(
                400, "InvalidUserData.SizeExceeded", "The specified parameter UserData exceeds the size limit."
            )
        if params["ClientToken"] in self.tokens:
            known, before = self.tokens[params["ClientToken"]]
            if before != params:
                return refused(400, "IdempotenceParamNotMatch", "The parameters differ from the first request's.")
            return created(known)
        card = TYPES[params["InstanceType"]]
        machine = FakeMachine(
            id=f"{region}:{self.next_id().partition(':')[2]}",
            name=params["InstanceName"],
            gpu=params["InstanceType"],
            gpu_count=card[1],
            is_spot=params.get("SpotStrategy", "NoSpot") != "NoSpot",
            facts={"params": params},
        )
        self.machines[machine.id] = machine
        self.tokens[params["ClientToken"]] = (machine.id, params)
        return created(machine.id)

    def _act(self, region, params, allowed, status):
        machine = self.machines.get(f"{region}:{params['InstanceId']}")
        if machine is None:
            return refused(404, "InvalidInstanceId.NotFound", "The specified InstanceId does not exist.")
        if machine.facts.get("lock") == "security":
            return refused(
                403, "InstanceLockedForSecurity", "The specified operation is denied as your instance is locked."
            )
        if machine.status not in allowed:
            return refused(
                403, "IncorrectInstanceStatus", "The current status of the resource does not support this operation."
            )
        machine.status = status
        return httpx.Response(200, json={"RequestId": "1C488B66-B819-4D14-8711-C4EAAA13AC01"})

    def _start_instance(self, region, params):
        machine = self.machines.get(f"{region}:{params['InstanceId']}")
        if machine is not None and machine.facts.get("mode") == "StopCharging" and not self.has_capacity:
            return refused(403, "OperationDenied.NoStock", "The resource is out of usage.")
        return self._act(region, params, {"stopped"}, "starting")

    def _stop_instance(self, region, params):
        machine = self.machines.get(f"{region}:{params['InstanceId']}")
        if machine is not None:
            machine.facts["mode"] = params.get("StoppedMode", "KeepCharging")
        return self._act(region, params, {"running"}, "stopping")

    def _reboot_instance(self, region, params):
        return self._act(region, params, {"running"}, "starting")

    def _delete_instance(self, region, params):
        machine = self.machines.get(f"{region}:{params['InstanceId']}")
        if machine is not None and machine.facts.get("charge") == "PrePaid":
            return refused(
                403, "ChargeTypeViolation", "The operation is not permitted due to charge type of the instance."
            )
        allowed = set(RAW) if params.get("Force") == "true" else {"stopped"}
        answer = self._act(region, params, allowed, "gone")
        if answer.status_code == 200:
            del self.machines[f"{region}:{params['InstanceId']}"]
        return answer

    def _describe_instance_types(self, region, params):
        types = [
            {
                "InstanceTypeId": name,
                "GPUSpec": card,
                "GPUAmount": count,
                "GPUMemorySize": memory,
                "CpuCoreCount": cpu,
                "MemorySize": ram,
            }
            for name, (card, count, memory, cpu, ram) in TYPES.items()
        ]
        start = int(params.get("NextToken") or 0)
        token = str(start + 2) if start + 2 < len(types) else ""
        return httpx.Response(
            200, json={"InstanceTypes": {"InstanceType": types[start : start + 2]}, "NextToken": token}
        )

    def _describe_available_resource(self, region, params):
        zones = [
            {
                "ZoneId": zone,
                "Status": "Available",
                "StatusCategory": "WithStock",
                "RegionId": region,
                "AvailableResources": {
                    "AvailableResource": [
                        {
                            "Type": params["DestinationResource"],
                            "SupportedResources": {
                                "SupportedResource": [
                                    {"Value": name, "Status": status, "StatusCategory": category}
                                    for name, (status, category) in sold.items()
                                ]
                            },
                        }
                    ]
                },
            }
            for zone, sold in ZONES.items()
            if zone.startswith(region)
        ]
        return httpx.Response(200, json={"AvailableZones": {"AvailableZone": zones}})

    def _describe_price(self, region, params):
        hour = PRICES.get(params["InstanceType"])
        if hour is None:
            return refused(400, "PriceNotFound", "The price of your queried resource is not found.")
        spot = params.get("SpotStrategy", "NoSpot") != "NoSpot"
        amount = (
            f"{hour}e-1"
            if spot
            else f"{int(hour.replace('.', '')) * PERIOD_FACTOR[params['PriceUnit']]}e-{len(hour.partition('.')[2])}"
        )
        text = """{"PriceInfo": {"Price": {"Currency": "CNY", "OriginalPrice": 999, "TradePrice": 888, "DetailInfos":
          {"DetailInfo": [{"Resource": "bandwidth", "TradePrice": 0}, {"Resource": "instance", "TradePrice": %s}]}}}}"""
        return httpx.Response(200, text=text % amount)

    def _get_caller_identity(self, region, params):
        return httpx.Response(200, json={"AccountId": "123456", "Arn": "acs:ram::123456:user/fleetdeck"})

    def _query_account_balance(self, region, params):
        data = {"AvailableAmount": "10,000.50\n", "Currency": "CNY", "QuotaLimit": "10000.00\n"}
        return httpx.Response(200, json={"Code": "200", "Message": "success", "Success": True, "Data": data})

    def _describe_instance_bill(self, region, params):
        pages = {"": ("i-bp101", 230.7288, "more"), "more": ("i-bpgone", 0.1, "")}
        instance, amount, token = pages[params.get("NextToken", "")]
        item = {"InstanceID": instance, "Item": "PayAsYouGoBill", "Currency": "CNY", "PretaxAmount": amount}
        data = {"NextToken": token, "Items": [item], "BillingCycle": params["BillingCycle"]}
        return httpx.Response(200, json={"Code": "Success", "Success": True, "Data": data})

    def _describe_images(self, region, params):
        mine = {"ImageId": "m-bp1", "ImageName": "trained", "Status": "Available", "Size": 100}
        new = [{"ImageId": key, "ImageName": name, "Status": "Creating"} for key, name in self.images.items()]
        system = [{"ImageId": f"ubuntu-{number}", "ImageName": f"Ubuntu {number}"} for number in range(103)]
        found = {"self": [mine, *(new if "Creating" in params["Status"] else [])], "system": system}
        shown = found.get(params["ImageOwnerAlias"], []) if region == HOME else []
        return numbered("Images", "Image", shown, params)

    def _create_image(self, region, params):
        if f"{region}:{params['InstanceId']}" not in self.machines:
            return refused(404, "InvalidInstanceId.NotFound", "The specified InstanceId does not exist.")
        self.images["m-new"] = params["ImageName"]
        return httpx.Response(200, json={"ImageId": "m-new"})

    def _describe_key_pairs(self, region, params):
        return numbered("KeyPairs", "KeyPair", [{"KeyPairName": "ops"}] if region == HOME else [], params)

    def _describe_security_groups(self, region, params):
        group = {"SecurityGroupId": f"sg-{region}", "SecurityGroupName": ""}
        return httpx.Response(200, json={"SecurityGroups": {"SecurityGroup": [group]}, "NextToken": ""})

    def _describe_v_switches(self, region, params):
        switch = {"VSwitchId": f"vsw-{region}", "VSwitchName": "main", "ZoneId": f"{region}-h"}
        return numbered("VSwitches", "VSwitch", [switch], params)

    def instance(self, machine):
        """Return a machine as DescribeInstances shows it."""
        card = TYPES[machine.gpu]
        charge = machine.facts.get("charge", "PostPaid")
        lock = "Recycling" if machine.is_preempted else machine.facts.get("lock")
        stopped = "Not-applicable" if charge == "PrePaid" else machine.facts.get("mode", "Not-applicable")
        expires = machine.created_at + timedelta(days=31) if charge == "PrePaid" else None
        return {
            "InstanceId": machine.id.partition(":")[2],
            "InstanceName": machine.name,
            "Status": machine.raw or RAW[machine.status],
            "InstanceType": machine.gpu,
            "InstanceTypeFamily": machine.gpu.rpartition(".")[0].rpartition("-")[0],
            "GPUSpec": card[0],
            "GPUAmount": machine.gpu_count,
            "Cpu": card[3],
            "Memory": card[4] * 1024,
            "RegionId": machine.id.partition(":")[0],
            "ZoneId": f"{machine.id.partition(':')[0]}-h",
            "InstanceChargeType": charge,
            "SpotStrategy": "SpotAsPriceGo" if machine.is_spot else "NoSpot",
            "StoppedMode": stopped,
            "CreationTime": machine.created_at.strftime("%Y-%m-%dT%H:%MZ"),
            "ExpiredTime": expires.strftime("%Y-%m-%dT%H:%MZ") if expires else "2099-12-31T15:59Z",
            "OperationLocks": {"LockReason": [{"LockReason": lock, "LockMsg": "locked"}] if lock else []},
            "PublicIpAddress": {"IpAddress": ["203.0.113.9"] if machine.status == "running" else []},
            "EipAddress": {"IpAddress": "", "AllocationId": ""},
            "VpcAttributes": {"PrivateIpAddress": {"IpAddress": ["172.17.0.5"]}, "VpcId": "vpc-1"},
            "AutoReleaseTime": "",
            "DeletionProtection": False,
            "ImageId": "ubuntu",
        }
