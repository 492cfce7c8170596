"""A Tencent Cloud account, as CVM, STS and billing show it: API 3.0, signed with TC3, errors inside a 200."""

import base64
import hashlib
import hmac
import json
import re
from datetime import UTC, datetime, timedelta

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor
from tests.providers.cloud_specs import tencent_problems

HOME, AWAY = "ap-guangzhou", "ap-shanghai"
SPEC = "tencent/cvm.v20170312.api.subset.json"
RAW = {
    "provisioning": "PENDING",
    "starting": "STARTING",
    "running": "RUNNING",
    "stopping": "STOPPING",
    "stopped": "STOPPED",
    "terminating": "TERMINATING",
}
WRITES = {"RunInstances", "StartInstances", "StopInstances", "RebootInstances", "TerminateInstances", "CreateImage"}
USER_DATA_LIMIT = 16 * 1024
# Type → (card, cards, GiB of a card, vCPU, GiB of memory).
TYPES = {
    "GN7.2XLARGE32": ("NVIDIA T4", 1, 16, 8, 32),
    "GN10X.9XLARGE160": ("NVIDIA V100", 4, 32, 36, 160),
    "GN7vi.5XLARGE80": ("NVIDIA T4", 0.5, 16, 20, 80),
    "S5.LARGE8": ("", 0, 0, 4, 8),
}
STOCK = {
    "GN7.2XLARGE32": ("SELL", "EnoughStock"),
    "GN10X.9XLARGE160": ("SOLD_OUT", "WithoutStock"),
    "GN7vi.5XLARGE80": ("SELL", "NormalStock"),
    "S5.LARGE8": ("SELL", "EnoughStock"),
}
HOUR = {
    "UnitPrice": 8.68,
    "UnitPriceDiscount": 7.81,
    "UnitPriceDiscountSecondStep": 6.94,
    "UnitPriceDiscountThirdStep": 5.21,
}
PRICES = {
    "POSTPAID_BY_HOUR": {**HOUR, "DiscountPrice": 0},
    "SPOTPAID": {"UnitPrice": 8.68, "UnitPriceDiscount": 1.736},
    "PREPAID": {
        "UnitPrice": 0,
        "OriginalPrice": 2500,
        "DiscountPrice": 2250,
        "OriginalPriceOneYear": 30000,
        "DiscountPriceOneYear": 24900,
    },
}
DENIED = "You are not authorized to perform the operation. Check your CAM policies."


class FakeTencent(FakeVendor):
    """CVM instances of one account in two regions. `forbidden`: actions that the key's policy does not allow."""

    kind = "tencent"
    credentials = {"secret_id": "AKIDfakefakefakefake", "secret_key": "sEcReTfAkEsEcReTfAkE"}
    options = {"regions": f"{HOME}, {AWAY}"}
    order_options = {
        "image": "img-pmqg1cw7",
        "security_group": "sg-1",
        "vpc": "vpc-1",
        "subnet": "subnet-1",
        "key": "skey-1",
        "disk_kind": "CLOUD_BSSD",
        "disk_gb": "200",
        "bandwidth_mbps": "20",
        "auto_renew": "no",
    }
    page_size = 10

    def __init__(self):
        super().__init__()
        self.forbidden = set()
        self.tokens = {}
        self.images = []
        self.can_stop_free = True  # whether the type can be stopped without charge

    def next_id(self):
        return f"{HOME}:ins-{super().next_id()}"

    def default_facts(self):
        return {"gpu": "GN7.2XLARGE32"}

    def problems(self, request):
        if request.url.host != "cvm.tencentcloudapi.com":
            return []
        return tencent_problems(SPEC, request.headers["x-tc-action"], json.loads(request.content))

    def sent(self, action):
        """Return the bodies of every call of an action so far."""
        return [json.loads(each.content) for each in self.requests if each.headers["x-tc-action"] == action]

    def is_authorised(self, request):
        """Recompute the signature from what came over the wire, and refuse a clock that is off by five minutes."""
        kind, _, rest = request.headers["authorization"].partition(" ")
        given = dict(part.strip().split("=", 1) for part in rest.split(","))
        identity, *scope = given["Credential"].split("/")
        stamp = int(request.headers["x-tc-timestamp"])
        day = datetime.fromtimestamp(stamp, tz=UTC).date().isoformat()
        service = request.url.host.partition(".")[0]
        is_late = abs(stamp - datetime.now(tz=UTC).timestamp()) > 300
        if is_late or identity != self.credentials["secret_id"] or scope != [day, service, "tc3_request"]:
            return False
        head = "".join(f"{name}:{request.headers[name]}\n" for name in given["SignedHeaders"].split(";"))
        digest = hashlib.sha256(request.content).hexdigest()
        text = f"{request.method}\n{request.url.path}\n\n{head}\n{given['SignedHeaders']}\n{digest}"
        to_sign = f"{kind}\n{stamp}\n{'/'.join(scope)}\n{hashlib.sha256(text.encode()).hexdigest()}"
        key = b"TC3" + self.credentials["secret_key"].encode()
        for part in (*scope, to_sign):
            key = hmac.new(key, part.encode(), "sha256").digest()
        return kind == "TC3-HMAC-SHA256" and key.hex() == given["Signature"]

    def is_write(self, request):
        return request.headers["x-tc-action"] in WRITES and not json.loads(request.content).get("DryRun")

    def is_create(self, request):
        return request.headers["x-tc-action"] == "RunInstances" and self.is_write(request)

    def key_refused(self, request):
        return refused(
            "AuthFailure.SecretIdNotFound", "The SecretId is not found, please ensure that your SecretId is correct."
        )

    def too_many(self, request):
        return refused(
            "RequestLimitExceeded", "Your current request times equals to `11` in a second, which exceeds the limit."
        )

    def no_capacity(self, request):
        return refused("ResourceInsufficient.SpecifiedInstanceType", "The specified type of instance is understocked.")

    def answer(self, request):
        action, body = request.headers["x-tc-action"], json.loads(request.content)
        if action in self.forbidden:
            return refused("UnauthorizedOperation", DENIED)
        handler = getattr(self, f"_{re.sub(r'(?<!^)(?=[A-Z])', '_', action).lower()}", None)
        if handler is None:
            return refused("InvalidAction", f"The action {action} does not exist.")
        return handler(request.headers.get("x-tc-region", ""), body)

    def _describe_instances(self, region, body):
        found = [machine for machine in self.listed() if machine.id.startswith(f"{region}:")]
        if "InstanceIds" in body:
            found = [machine for machine in found if machine.id.partition(":")[2] in body["InstanceIds"]]
            if not found:
                return refused("InvalidInstanceId.NotFound", "The instance does not exist.")
        for each in body.get("Filters", []):
            assert each["Name"] == "instance-name"
            found = [machine for machine in found if machine.name in each["Values"]]
        start = body.get("Offset", 0)
        shown = found[start : start + min(body.get("Limit", 20), self.page_size)]
        return done(TotalCount=len(found), InstanceSet=[self.instance(machine) for machine in shown])

    def _run_instances(self, region, body):
        if body.get("DryRun"):
            return done() if "ImageId" in body else refused("MissingParameter", "The parameter ImageId is missing.")
        if len(body["UserData"]) > USER_DATA_LIMIT:
            return refused("InvalidParameterValue.TooLarge", "UserData is too large.")
        if body["ClientToken"] in self.tokens:
            return done(InstanceIdSet=[self.tokens[body["ClientToken"]].partition(":")[2]])
        base64.b64decode(body["UserData"], validate=True)
        machine = FakeMachine(
            id=f"{region}:{self.next_id().partition(':')[2]}",
            name=body["InstanceName"],
            gpu=body["InstanceType"],
            gpu_count=TYPES[body["InstanceType"]][1],
            is_spot=body["InstanceChargeType"] == "SPOTPAID",
            facts={"charge": body["InstanceChargeType"]},
        )
        self.machines[machine.id] = machine
        self.tokens[body["ClientToken"]] = machine.id
        return done(InstanceIdSet=[machine.id.partition(":")[2]])

    def _act(self, region, body, allowed, status, operation):
        machine = self.machines.get(f"{region}:{body['InstanceIds'][0]}")
        if machine is None:
            return refused("InvalidInstanceId.NotFound", "The instance does not exist.")
        if machine.status not in allowed:
            return refused(
                f"UnsupportedOperation.InstanceState{RAW[machine.status].title()}", "The state does not allow it."
            )
        machine.status, machine.facts["operation"] = status, operation
        return done()

    def _start_instances(self, region, body):
        machine = self.machines.get(f"{region}:{body['InstanceIds'][0]}")
        if machine is not None and machine.facts.get("mode") == "STOP_CHARGING" and not self.has_capacity:
            return refused("ResourcesSoldOut.SpecifiedInstanceType", "The specified instance type is sold out.")
        return self._act(region, body, {"stopped"}, "starting", "StartInstances")

    def _stop_instances(self, region, body):
        mode = body.get("StoppedMode", "KEEP_CHARGING")
        if mode == "STOP_CHARGING" and not self.can_stop_free:
            return refused("UnsupportedOperation.StoppedModeStopCharging", "The instance does not support it.")
        machine = self.machines.get(f"{region}:{body['InstanceIds'][0]}")
        if machine is not None:
            machine.facts["mode"] = mode
        return self._act(region, body, {"running"}, "stopping", "StopInstances")

    def _reboot_instances(self, region, body):
        return self._act(region, body, {"running"}, "starting", "RebootInstances")

    def _terminate_instances(self, region, body):
        machine = self.machines.get(f"{region}:{body['InstanceIds'][0]}")
        if machine is not None and machine.facts.get("charge") == "PREPAID" and "isolated" not in machine.facts:
            machine.facts["isolated"] = "MANMADE"
            return self._act(region, body, set(RAW), "stopped", "TerminateInstances")
        return self._act(region, body, set(RAW) - {"terminating"}, "terminating", "TerminateInstances")

    def _describe_zone_instance_config_infos(self, region, body):
        [each] = body["Filters"]
        assert each["Name"] == "instance-charge-type"
        items = [
            {
                "Zone": f"{region}-6",
                "InstanceType": name,
                "InstanceChargeType": charge,
                "Cpu": cpu,
                "Memory": ram,
                "Gpu": 0,
                "GpuCount": count,
                "Status": STOCK[name][0],
                "StatusCategory": STOCK[name][1],
                "Price": {"ChargeUnit": "HOUR", **PRICES[charge]},
                "TypeName": "GPU",
            }
            for name, (_, count, _, cpu, ram) in TYPES.items()
            for charge in each["Values"]
        ]
        return done(InstanceTypeQuotaSet=items if region == HOME else [])

    def _describe_instance_type_configs(self, region, body):
        items = [
            {
                "Zone": f"{region}-6",
                "InstanceType": name,
                "GPU": int(count),
                "GpuCount": count,
                "GpuType": card,
                "GpuMemory": memory,
                "CPU": cpu,
                "Memory": ram,
            }
            for name, (card, count, memory, cpu, ram) in TYPES.items()
        ]
        return done(InstanceTypeConfigSet=items)

    def _get_caller_identity(self, region, body):
        return done(Arn="qcs::cam::uin/100000000001:uin/100000000002", AccountId="100000000001", Type="SubUser")

    def _describe_account_balance(self, region, body):
        return done(Balance=1234567, RealBalance=1234567.0, Uin=100000000001)

    def _describe_images(self, region, body):
        [each] = body["Filters"]
        assert each["Name"] == "image-type"
        mine = [{"ImageId": "img-1", "ImageName": "trained", "ImageState": "NORMAL", "ImageSize": 100}, *self.images]
        public = [{"ImageId": f"img-ubuntu{number}", "ImageName": f"Ubuntu {number}"} for number in range(23)]
        found = [
            *(mine if "PRIVATE_IMAGE" in each["Values"] else []),
            *(public if "PUBLIC_IMAGE" in each["Values"] else []),
        ]
        return self._page("ImageSet", found if region == HOME else [], body)

    def _create_image(self, region, body):
        if f"{region}:{body['InstanceId']}" not in self.machines:
            return refused("InvalidInstanceId.NotFound", "The instance does not exist.")
        self.images.append({"ImageId": "img-new", "ImageName": body["ImageName"], "ImageState": "CREATING"})
        return done(ImageId="img-new")

    def _describe_key_pairs(self, region, body):
        return self._page("KeyPairSet", [{"KeyId": "skey-1", "KeyName": "ops"}], body)

    def _describe_security_groups(self, region, body):
        assert isinstance(body["Offset"], str)
        return self._page("SecurityGroupSet", [{"SecurityGroupId": f"sg-{region}", "SecurityGroupName": ""}], body)

    def _describe_subnets(self, region, body):
        assert isinstance(body["Limit"], str)
        subnet = {"SubnetId": f"subnet-{region}", "SubnetName": "main", "VpcId": f"vpc-{region}", "Zone": f"{region}-6"}
        return self._page("SubnetSet", [subnet], body)

    def _page(self, key, entries, body):
        start = int(body["Offset"])
        return done(**{key: entries[start : start + min(int(body["Limit"]), self.page_size)]}, TotalCount=len(entries))

    def instance(self, machine):
        """Return a machine as DescribeInstances shows it."""
        card = TYPES[machine.gpu]
        charge = machine.facts.get("charge") or ("SPOTPAID" if machine.is_spot else "POSTPAID_BY_HOUR")
        state = "SHUTDOWN" if machine.is_preempted else machine.raw or RAW[machine.status]
        expires = (machine.created_at + timedelta(days=31)).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {
            "InstanceId": machine.id.partition(":")[2],
            "InstanceName": machine.name,
            "InstanceState": state,
            "RestrictState": machine.facts.get("restrict", "NORMAL"),
            "IsolatedSource": machine.facts.get("isolated", "NOTISOLATED"),
            "InstanceType": machine.gpu,
            "InstanceChargeType": charge,
            "StopChargingMode": machine.facts.get("mode", "NOT_APPLICABLE") if state == "STOPPED" else "NOT_APPLICABLE",
            "CPU": card[3],
            "Memory": card[4],
            "GPUInfo": {"GPUCount": float(machine.gpu_count), "GPUId": [], "GPUType": card[0]},
            "Placement": {"Zone": f"{machine.id.partition(':')[0]}-6", "ProjectId": 0},
            "PublicIpAddresses": ["203.0.113.9"] if state == "RUNNING" else None,
            "PrivateIpAddresses": ["172.16.32.78"],
            "CreatedTime": machine.created_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "ExpiredTime": expires if charge == "PREPAID" else None,
            "RenewFlag": "NOTIFY_AND_MANUAL_RENEW" if charge == "PREPAID" else None,
            "LatestOperation": machine.facts.get("operation", "RunInstances"),
            "LatestOperationState": "SUCCESS",
            "LatestOperationErrorMsg": "",
            "LoginSettings": {"KeyIds": None},
            "ImageId": "img-pmqg1cw7",
            "DisableApiTermination": False,
        }


def done(**members):
    """Return an answer."""
    return httpx.Response(200, json={"Response": {**members, "RequestId": "d655191e-a39d-43d2-8349-8c3f2bf4b327"}})


def refused(code, message):
    """Return an error: it comes with the status 200."""
    return done(Error={"Code": code, "Message": message})
