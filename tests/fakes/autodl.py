"""An AutoDL account, as the developer API shows its instances Pro.

Errors come inside HTTP 200 with a code and a Chinese sentence. The vendor publishes neither the answer to a wrong token nor
one to too many calls; the ones here are of the kind that its other services give.
"""

import json

import httpx

from tests.fakes.vendor import FakeMachine, FakeVendor

PRO = "/api/v1/dev/instance/pro"
RAW = {
    "provisioning": "starting",
    "starting": "starting",
    "running": "running",
    "stopping": "shutting_down",
    "stopped": "shutdown",
    "terminating": "releasing",
}
SPECS = {"h800", "v-48g", "v-48g-350w", "v-32g-p", "4090D", "5090-p", "pro6000-p"}
ALIASES = {"v-48g": "vGPU-48GB", "5090-p": "RTX 5090", "h800": "H800"}
REGIONS = {"westDC3", "beijingDC2"}
# Members of the documented request bodies: required ones, optional ones.
BODIES = {
    f"{PRO}/create": (
        {"req_gpu_amount", "expand_system_disk_by_gb", "gpu_spec_uuid", "image_uuid", "cuda_v_from"},
        {"data_center_list", "instance_name", "start_command"},
    ),
    f"{PRO}/list": ({"page_index", "page_size"}, set()),
    f"{PRO}/image/private/list": ({"page_index", "page_size"}, set()),
    f"{PRO}/power_on": ({"instance_uuid", "payload"}, {"start_command"}),
    f"{PRO}/power_off": ({"instance_uuid"}, set()),
    f"{PRO}/release": ({"instance_uuid"}, set()),
    f"{PRO}/image/save": ({"instance_uuid", "image_name"}, set()),
    "/api/v1/dev/wallet/balance": (set(), set()),
}
READS = {f"{PRO}/list", f"{PRO}/image/private/list", "/api/v1/dev/wallet/balance"}
PASSWORD = "hunter2-of-root"


class FakeAutoDl(FakeVendor):
    """Instances Pro of one account."""

    kind = "autodl"
    credentials = {"token": "eyJhbGciOiJFUzI1NiJ9.FAKE.SECRET"}
    order_options = {"image": "base-image-l2t43iu6uk", "region": "", "cuda_from": "118", "disk_gb": "0"}
    page_size = 50
    tells_prices = False

    def __init__(self):
        super().__init__()
        self.images = {}
        self.host = "api.autodl.com"

    def next_id(self):
        return f"pro-{super().next_id()}76c61fdf1"

    def default_facts(self):
        return {"gpu": "v-48g"}

    def is_authorised(self, request):
        return request.headers.get("authorization") == self.credentials["token"]

    def is_write(self, request):
        return request.method == "POST" and request.url.path not in READS

    def is_create(self, request):
        return request.url.path == f"{PRO}/create"

    def key_refused(self, request):
        return failure("AuthorizeFailed", "登录超时，请重新登录")

    def too_many(self, request):
        return httpx.Response(429, text="<html>429 Too Many Requests</html>")

    def no_capacity(self, request):
        return failure("InternalError", "当前算力规格暂无库存, 请修改配置或稍等再试")

    def problems(self, request):
        """Return what the documentation of the request's body does not know."""
        if request.method == "GET":
            return [] if not request.content else ["a GET takes its parameters in the query"]
        required, optional = BODIES.get(request.url.path, (None, None))
        if required is None:
            return [f"{request.url.path} is no call"]
        members = set(json.loads(request.content))
        return [f"{request.url.path} lacks {name}" for name in sorted(required - members)] + [
            f"{request.url.path} knows no {name}" for name in sorted(members - required - optional)
        ]

    def answer(self, request):
        path = request.url.path
        if request.url.host != self.host:
            return httpx.Response(404, text="not found")
        if self.problems(request):
            return failure("RequestParameterIsWrong", "请求参数错误")
        if request.method == "GET":
            return self._read(path, request.url.params.get("instance_uuid"))
        body = json.loads(request.content)
        if path == "/api/v1/dev/wallet/balance":
            return success({"uid": 282383, "assets": 29290, "blocked_asset": 0, "voucher_balance": 0})
        if path == f"{PRO}/list":
            return page(body, [self.instance(machine) for machine in self.listed()])
        if path == f"{PRO}/image/private/list":
            return page(body, list(self.images.values()))
        if path == f"{PRO}/create":
            return self._create(body)
        machine = self.machines.get(body["instance_uuid"])
        if machine is None:
            return failure("RecordNotFoundError", "未查询到相关实例")
        return getattr(self, "_" + path.rpartition("/")[2])(machine, body)

    def _read(self, path, instance_id):
        machine = self.machines.get(instance_id)
        if machine is None:
            return failure("RecordNotFoundError", "未查询到相关实例")
        if path == f"{PRO}/status":
            return success(self.instance(machine)["status"])
        return success(self.snapshot(machine)) if path == f"{PRO}/snapshot" else httpx.Response(404)

    def _create(self, body):
        regions = set(body.get("data_center_list", []))
        if body["gpu_spec_uuid"] not in SPECS or not 1 <= body["req_gpu_amount"] <= 4 or not regions <= REGIONS:
            return failure("RequestParameterIsWrong", "请求参数错误")
        machine = FakeMachine(
            id=self.next_id(),
            name=body.get("instance_name", ""),
            gpu=body["gpu_spec_uuid"],
            gpu_count=body["req_gpu_amount"],
            facts=body,
        )
        self.machines[machine.id] = machine
        return success(machine.id)

    def _power_on(self, machine, body):
        if body["payload"] != "gpu":
            return failure("InternalError", "不支持的启动模式")
        if machine.status != "stopped":
            return failure("InternalError", "实例当前状态无法开机")
        if not self.has_capacity:
            return self.no_capacity(None)
        machine.status = "starting"
        return success({"description": "开机指令已下发，请稍后关注实例最新状态"})

    def _power_off(self, machine, body):
        if machine.status != "running":
            return failure("InternalError", "实例当前状态无法关机")
        machine.status = "stopping"
        return success(None)

    def _release(self, machine, body):
        if machine.status != "stopped":
            return failure("InternalError", "请先关机再释放实例")
        machine.status = "terminating"
        return success(None)

    def _save(self, machine, body):
        if machine.status != "stopped":
            return failure("InternalError", "保存实例镜像前，请确保实例是关机状态")
        image_id = f"image-{len(self.images):08x}"
        self.images[image_id] = {
            "image_uuid": image_id,
            "name": body["image_name"],
            "status": "saving",
            "image_size": 0,
            "create_at": "2026-11-30T16:00:00+08:00",
        }
        return success({"image_uuid": image_id})

    def instance(self, machine):
        """Return a machine as the list shows it."""
        never = {"Time": "0001-01-01T00:00:00Z", "Valid": False}
        return {
            "uuid": machine.id,
            "name": machine.name,
            "status": machine.raw or RAW[machine.status],
            "sub_status": "",
            "gpu_spec_uuid": machine.gpu,
            "req_gpu_amount": machine.gpu_count,
            "region_sign": "bj-B2",
            "region_name": "北京B区",
            "charge_type": machine.facts.get("charge_type", "payg"),
            "start_mode": machine.facts.get("start_mode", "gpu"),
            "created_at": machine.created_at.isoformat(),
            "stopped_at": never,
            "expired_at": machine.facts.get("expired_at", never),
        }

    def snapshot(self, machine):
        """Return what the vendor tells of one machine, its secrets too."""
        return {
            "region_sign": "bj-B2",
            "payg_price": machine.facts.get("payg_price", 2980),
            "origin_pay_price": 3180,
            "snapshot_gpu_alias_name": ALIASES.get(machine.gpu, ""),
            "chip_corp": "nvidia",
            "cpu_arch": "x86",
            "usage_info": {"valid": True, "mem_limit": 96636764160, "cpu_usage_percent": 1.5},
            "ssh_command": "ssh -p 34222 root@connect.bjb2.seetacloud.com",
            "proxy_host": "connect.bjb2.seetacloud.com",
            "ssh_port": 34222,
            "root_password": PASSWORD,
            "jupyter_token": f"jupyter-{PASSWORD}",
            "jupyter_domain": "a282383-bd11.bjb2.seetacloud.com",
            "service_6006_domain": "u282383-bd11.bjb2.seetacloud.com",
        }


def success(data):
    """Return an envelope that says Success."""
    return httpx.Response(200, json={"code": "Success", "data": data, "msg": "", "request_id": "0af1"})


def failure(code, msg):
    """Return an error as the vendor gives it: inside HTTP 200."""
    return httpx.Response(200, json={"code": code, "data": None, "msg": msg, "request_id": "0af1"})


def page(body, entries):
    """Return one page of a list; an empty one is null."""
    index, size = body["page_index"], body["page_size"]
    shown = entries[(index - 1) * size : index * size]
    return success(
        {
            "list": shown or None,
            "page_index": index,
            "page_size": size,
            "offset": 0,
            "max_page": -(-len(entries) // size) or 1,
            "result_total": len(entries),
        }
    )
