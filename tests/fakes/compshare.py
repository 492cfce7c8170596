"""A Compshare account, as its signed form API shows it.

Errors come inside HTTP 200 as RetCode and Message. The gateway's answer to too many calls is not published; this one is a
plain 429.
"""

import base64
import hashlib
import re
from urllib.parse import parse_qsl

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor
from tests.providers import ucloud_spec

RAW = {
    "provisioning": "Initializing",
    "starting": "Starting",
    "running": "Running",
    "stopping": "Stopping",
    "stopped": "Stopped",
}
ZONES = {
    "cn-wlcb-01": {"Region": "cn-wlcb", "RegionId": 1000018, "ZoneId": 10027, "Describe": "华北二A"},
    "cn-sh2-01": {"Region": "cn-sh2", "RegionId": 1000002, "ZoneId": 5001, "Describe": "上海二A"},
}
WITHDRAWN = {"cn-bj2-03": "cn-bj2"}  # sold no more and not in the list of zones; machines run on there
GPUS = {"4090": 24, "4090_48G": 48, "A800": 80, "2080": 11}
# An hour of one card in yuan for Postpay and Spot; a day and a month are of the account's own arithmetic.
HOUR = {"4090": ("1.92", "1.31"), "4090_48G": ("2.98", None), "A800": ("9.9", None), "2080": ("0.5", None)}
PASSWORD = "Hunter2-of-root"
# Parameters of each action beside the common ones: required, optional (names of arrays without their index).
ACTIONS = {
    "DescribeCompShareSupportZone": ({"Region"}, set()),
    "DescribeCompShareInstance": (set(), {"Region", "Zone", "Limit", "Offset", "UHostIds", "ProjectId"}),
    "DescribeAvailableCompShareInstanceTypes": ({"Region"}, {"Zone", "MachineTypes", "InstanceType", "ProjectId"}),
    "DescribeCompShareGpuInventory": ({"Region"}, {"Zone"}),
    "GetCompShareInstancePrice": (
        {"Region", "Zone", "GpuType", "Gpu", "Cpu", "Memory"},
        {"ChargeType", "Disks", "CompShareImageId", "Quantity", "ProjectId"},
    ),
    "DescribeCompShareImages": ({"Region"}, {"Zone", "ImageType", "Name", "Offset", "ProjectId"}),
    "DescribeCompShareCustomImages": ({"Region", "Zone"}, {"CompShareImageId", "Offset", "Limit", "ProjectId"}),
    "CreateCompShareInstance": (
        {"Region", "Zone", "GpuType", "GPU", "CPU", "Memory", "MachineType", "CompShareImageId", "Disks"},
        {"MinimalCpuPlatform", "ChargeType", "Quantity", "Name", "Remark", "SecurityGroupId", "MaxCount", "ProjectId"},
    ),
    "StartCompShareInstance": ({"Region", "Zone", "UHostId"}, {"WithoutGpu", "ProjectId"}),
    "StopCompShareInstance": ({"Region", "Zone", "UHostId"}, {"Force", "ProjectId"}),
    "RebootCompShareInstance": ({"Region", "Zone", "UHostId"}, {"ProjectId"}),
    "TerminateCompShareInstance": ({"Region", "Zone", "UHostId"}, {"ReleaseUDisk", "ProjectId"}),
    "CreateCompShareCustomImage": ({"Region", "Zone", "UHostId", "Name"}, {"Description", "ProjectId"}),
}
WRITES = ("Create", "Start", "Stop", "Reboot", "Terminate")


class FakeCompshare(FakeVendor):
    """Instances of one account, in two regions."""

    kind = "compshare"
    credentials = {"public_key": "4ebnPUBLICkey0aQ9", "private_key": "46f09bb9fab4f12dfc160dae12273d5332b5debe"}
    order_options = {"image": "compshareImage-1minbz219ceq", "disk_gb": "100"}
    page_size = 100

    def __init__(self):
        super().__init__()
        self.images = {}
        self.cards = {
            "Exclusive": {"10027": {"4090": 40, "4090_48G": 0, "A800": 1}, "5001": {}},
            "Spot": {"10027": {"4090": 3}},
        }
        self.quotes_all = True  # a question without a charge type is answered for all of them, else for the month

    def next_id(self):
        return f"cn-wlcb:uhost-{super().next_id()}tq6i2ltk"

    def add(self, name="machine", **facts):
        """Put a machine where its zone is: the key here, as the panel's id, names the region."""
        machine = super().add(name, **facts)
        del self.machines[machine.id]
        return self._placed(machine)

    def _placed(self, machine):
        machine.id = f"{region_of(machine)}:{local(machine)}"
        self.machines[machine.id] = machine
        return machine

    def default_facts(self):
        return {"gpu": "4090"}

    def problems(self, request):
        return ucloud_spec.problems(request)

    def is_authorised(self, request):
        form = dict(parse_qsl(request.content.decode(), keep_blank_values=True))
        told = form.pop("Signature", "")
        if form.get("PublicKey") != self.credentials["public_key"]:
            return False
        text = "".join(key + value for key, value in sorted(form.items())) + self.credentials["private_key"]
        return hashlib.sha1(text.encode()).hexdigest() == told

    def is_write(self, request):
        return form_of(request)["Action"].startswith(WRITES)

    def is_create(self, request):
        return form_of(request)["Action"] == "CreateCompShareInstance"

    def key_refused(self, request):
        return failure(171, "Signature VerifyAC Error")

    def too_many(self, request):
        return httpx.Response(429, text="Too Many Requests")

    def no_capacity(self, request):
        return failure(226604, "当前资源不足，请稍后再试")

    def answer(self, request):
        form = form_of(request)
        action = form.pop("Action")
        required, optional = ACTIONS.get(action, (None, None))
        if required is None:
            return failure(161, f"Action [{action}] not exist")
        names = {key.partition(".")[0] for key in form} - {"PublicKey", "Signature"}
        for name in sorted(required - names):
            return failure(220, f"Missing params [{name}]")
        for name in sorted(names - required - optional):
            return failure(230, f"Params [{name}] not available")
        return getattr(self, re.sub(r"(?=[A-Z])", "_", action).lower())(form)

    def _describe_comp_share_support_zone(self, form):
        return success(ZoneInfo=[{"Zone": zone, **facts} for zone, facts in ZONES.items()])

    def _describe_comp_share_instance(self, form):
        region = form.get("Region")
        if region not in {None, *WITHDRAWN.values(), *(zone["Region"] for zone in ZONES.values())}:
            return failure(230, "Params [Region] not available")
        newest = next(reversed(self.machines.values()), None)
        shown = self.listed() if newest and region_of(newest) == region else list(self.machines.values())
        offset, limit = int(form.get("Offset", 0)), int(form.get("Limit", 20))
        there = [self.host(machine) for machine in shown if region is None or region_of(machine) == region]
        if limit > 100 or offset > len(there):
            return failure(230, "Params [Limit] not available")
        return success(TotalCount=len(there), UHostSet=there[offset : offset + limit])

    def _describe_available_comp_share_instance_types(self, form):
        types = [
            instance_type("4090", "cn-wlcb-01", "Normal", {1: [(16, [64, 94]), (12, [48])], 2: [(32, [128])], 3: []}),
            instance_type("4090", "cn-sh2-01", "Normal", {1: [(14, [48])]}),
            instance_type("4090_48G", "cn-wlcb-01", "SoldOut", {1: [(16, [64])]}),
            instance_type("A800", "cn-wlcb-01", "Normal", {1: [(20, [200])], 8: [(124, [1800])]}, disk="CLOUD_RSSD"),
            instance_type("2080", "cn-wlcb-01", "Hidden", {1: [(8, [32])]}),
        ]
        return success(
            AvailableInstanceTypes=[each for each in types if ZONES[each["Zone"]]["Region"] == form["Region"]]
        )

    def _describe_comp_share_gpu_inventory(self, form):
        return success(GpuInventory=self.cards, SpotUnsupportedGpuTypes=["4090_48G", "A800", "2080"], UpdateTime=1)

    def _get_comp_share_instance_price(self, form):
        if form["GpuType"] not in GPUS or int(form["Memory"]) % 1024:
            return failure(230, "Params [GpuType] not available")
        count = int(form["Gpu"])
        prices = {kind: price for kind, price in zip(("Postpay", "Spot"), HOUR[form["GpuType"]], strict=True) if price}
        prices = {**prices, "Day": "40.5", "Month": "1068.00"}
        kinds = [form["ChargeType"]] if "ChargeType" in form else (list(prices) if self.quotes_all else ["Month"])
        if not set(kinds) <= set(prices):
            return failure(230, "Params [ChargeType] not available")
        # Written by hand: floats of the wire with all their digits, for the whole machine.
        details = ",".join(
            f'{{"ChargeType":"{kind}","Instance":{times(prices[kind], count)},"SystemDisks":0.0}}' for kind in kinds
        )
        return httpx.Response(
            200, text=f'{{"Action":"GetCompShareInstancePriceResponse","RetCode":0,"PriceDetails":[{details}]}}'
        )

    def _describe_comp_share_images(self, form):
        return images_page(
            form,
            [
                {"CompShareImageId": f"compshareImage-{number}", "Name": f"cuda{number}", "Status": "Available"}
                for number in range(25)
            ],
            20,
        )

    def _describe_comp_share_custom_images(self, form):
        there = [image for image in self.images.values() if image["Zone"] == form["Zone"]]
        return images_page(form, there, int(form.get("Limit", 20)))

    def _create_comp_share_instance(self, form):
        zone = form["Zone"]
        if zone not in ZONES or ZONES[zone]["Region"] != form["Region"] or form["MachineType"] != "G":
            return failure(230, "Params [Zone] not available")
        if form["Disks.0.IsBoot"] != "true" or int(form["Memory"]) % 1024 or int(form.get("Quantity", 1)) < 1:
            return failure(230, "Params [Memory] not available")
        machine = FakeMachine(
            id=self.next_id(),
            name=form.get("Name", "host"),
            gpu=form["GpuType"],
            gpu_count=int(form["GPU"]),
            is_spot=form["ChargeType"] == "Spot",
            facts={"zone": zone, "charge_type": "Postpay" if form["ChargeType"] == "Spot" else form["ChargeType"]},
        )
        return success(UHostIds=[local(self._placed(machine))])

    def _start_comp_share_instance(self, form):
        return self._act(form, {"Stopped"}, "starting", needs_capacity=True)

    def _stop_comp_share_instance(self, form):
        machine = self.machines.get(f"{form['Region']}:{form['UHostId']}")
        if machine is not None and machine.is_spot and form.get("Force") != "true":
            return failure(8328, "Spot instance can not be stopped")
        return self._act(form, {"Running"}, "stopping")

    def _reboot_comp_share_instance(self, form):
        return self._act(form, {"Running"}, "starting")

    def _terminate_comp_share_instance(self, form):
        answer = self._act(form, {"Stopped", "Install Fail"}, "stopped")
        if answer.json()["RetCode"] == 0:
            del self.machines[f"{form['Region']}:{form['UHostId']}"]
        return answer

    def _act(self, form, states, status, *, needs_capacity=False):
        machine = self.machines.get(f"{form['Region']}:{form['UHostId']}")
        if machine is None or zone_of(machine) != form["Zone"]:
            return failure(8039, "UHost instance not found")
        if self.host(machine)["State"] not in states:
            return failure(8037, "The state of the instance does not allow the operation")
        if needs_capacity and not self.has_capacity:
            return self.no_capacity(None)
        machine.status, machine.is_preempted = status, False
        return success(UHostId=local(machine))

    def _create_comp_share_custom_image(self, form):
        image_id = f"compshareImage-own{len(self.images)}"
        self.images[image_id] = {
            "CompShareImageId": image_id,
            "Name": form["Name"],
            "Zone": form["Zone"],
            "Status": "Making",
            "CreateTime": 1764489600,
            "Size": 30720,
        }
        return success(CompShareImageId=image_id)

    def host(self, machine):
        """Return a machine as the list shows it, its secrets too."""
        state = machine.raw or ("Stopped" if machine.is_preempted else RAW[machine.status])
        running = state == "Running"
        memory = GPUS.get(machine.gpu)
        return {
            "UHostId": local(machine),
            "Name": machine.name,
            "State": state,
            "Zone": zone_of(machine),
            "GpuType": machine.gpu,
            "GPU": machine.gpu_count,
            "CPU": 16,
            "Memory": 65536,
            "GraphicsMemory": {"Value": memory, "Rate": 3} if memory else None,
            "ChargeType": machine.facts.get("charge_type", "Postpay"),
            "IsSpot": machine.is_spot,
            "InstancePrice": 1.92,
            "CompShareImagePrice": 0,
            "DiskPriceInfo": [{"ChargeType": "Postpay", "IsBoot": True, "Price": 0.05}],
            "PostPayPowerOffBillingResource": [{"ChargeType": "Postpay", "IsBoot": True, "Price": 0.05}],
            "PostPayShutdown": True,
            "IsExpire": "No",
            "AutoRenew": "Yes",
            "CreateTime": int(machine.created_at.timestamp()),
            "ExpireTime": 1767225600,
            "InstanceType": "Container",
            "CompShareImageId": "compshareImage-1minbz219ceq",
            "IPSet": [
                {"IPMode": "IPv4", "Type": "Private", "IP": f"cpod-{local(machine)}"},
                {"IPMode": "IPv4", "Type": "Bgp", "IP": "203.0.113.9"},
            ],
            "SshLoginCommand": "ssh -p 28870 root@cpod-1tq6-s1.podtcp.compshare.cn" if running else "",
            "Password": base64.b64encode(PASSWORD.encode()).decode(),
            "Softwares": [{"Name": "JupyterLab", "URL": f"https://jupyter.example/?token={PASSWORD}"}],
            **machine.facts.get("host", {}),
        }


def form_of(request):
    """Return the parameters of a request."""
    return dict(parse_qsl(request.content.decode(), keep_blank_values=True))


def local(machine):
    """Return the id of a machine as the vendor has it."""
    return machine.id.partition(":")[2]


def zone_of(machine):
    """Return where a machine is."""
    return machine.facts.get("zone", "cn-wlcb-01")


def region_of(machine):
    """Return the region of a machine's zone."""
    zone = zone_of(machine)
    return WITHDRAWN.get(zone) or ZONES[zone]["Region"]


def times(price, count):
    """Return a price times a count with the digits of the price."""
    places = len(price.partition(".")[2])
    number = int(price.replace(".", "")) * count
    return f"{number // 10**places}.{number % 10**places:0{places}d}" if places else str(number)


def instance_type(name, zone, status, sizes, *, disk="CLOUD_SSD"):
    """Return one type as the catalogue shows it; memory in GB."""
    return {
        "Name": name,
        "Zone": zone,
        "Status": status,
        "InstanceType": "uhost",
        "MachineClass": "GPU",
        "MachineSizes": [
            {"Gpu": count, "Collection": [{"Cpu": cpu, "Memory": memory} for cpu, memory in pairs]}
            for count, pairs in sizes.items()
        ],
        "Disks": [{"Name": "cloudDisk", "BootDisk": [{"Name": disk, "MaximalSize": 1000}], "DataDisk": None}],
        "GraphicsMemory": {"Value": GPUS[name], "Rate": 3},
    }


def images_page(form, images, limit):
    """Return one page of images."""
    offset = int(form.get("Offset", 0))
    return success(TotalCount=len(images), ImageSet=images[offset : offset + limit])


def success(**members):
    """Return an answer whose RetCode is 0."""
    return httpx.Response(200, json={"RetCode": 0, "Action": "Response", **members})


def failure(code, message):
    """Return an error as the vendor gives it: inside HTTP 200."""
    return httpx.Response(200, json={"RetCode": code, "Message": message, "Action": "Response"})
