"""What the search over everything finds: servers, GPUs by UUID or model, endpoints, probes, leases, accounts, and pages."""

from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from endpoints.selectors import endpoint_list
from fleet.models import Gpu, ProviderAccount, Server
from fleet.selectors.leasing import lease_list
from frontend.leasing.accounts import kind_label
from monitoring.probing.models import Probe
from panel.accounts.capabilities import Capability, has_capability

LIMIT: Final = 8


@dataclass(frozen=True, slots=True)
class Hit:
    """One line of the results. kind: server, gpu, endpoint, probe, …, page; detail: what tells it from its likes."""

    kind: str
    icon: str
    label: str
    detail: str
    href: str


@dataclass(frozen=True, slots=True)
class Target:
    """A page that the search knows, with words by which people look for it."""

    url_name: str
    icon: str
    label: Promise
    words: str
    capability: Capability


PAGES: Final = (
    Target("overview", "overview", gettext_lazy("Overview"), "overview home start 总览", Capability.FLEET_VIEW),
    Target("fleet", "fleet", gettext_lazy("Fleet"), "fleet servers gpus nodes 机群 节点", Capability.FLEET_VIEW),
    Target(
        "endpoints",
        "endpoints",
        gettext_lazy("Endpoints"),
        "endpoints models inference replicas 推理服务 副本",
        Capability.FLEET_VIEW,
    ),
    Target(
        "endpoint-new",
        "endpoints",
        gettext_lazy("Deploy an endpoint"),
        "deploy endpoint model vllm sglang wizard 部署",
        Capability.ENDPOINTS_MANAGE,
    ),
    Target("gateways", "endpoints", gettext_lazy("Gateways"), "gateways envoy address 网关", Capability.FLEET_VIEW),
    Target("endpoint-keys", "key", gettext_lazy("Keys"), "keys callers api 密钥", Capability.ENDPOINTS_MANAGE),
    Target(
        "secrets",
        "lock",
        pgettext_lazy("of engines", "Secrets"),
        "secrets tokens environment 机密",
        Capability.ENDPOINTS_MANAGE,
    ),
    Target(
        "probes", "probes", gettext_lazy("Probes"), "probes latency ttft uptime p99 measure 探测", Capability.FLEET_VIEW
    ),
    Target(
        "diagnoses",
        "probes",
        gettext_lazy("Diagnosis"),
        "diagnosis slow why latency network queue 诊断 慢",
        Capability.FLEET_VIEW,
    ),
    Target(
        "golive-runs",
        "probes",
        gettext_lazy("Go-live tests"),
        "go-live load test goodput knee 上线测试",
        Capability.FLEET_VIEW,
    ),
    Target(
        "join",
        "terminal",
        gettext_lazy("Add a server"),
        "join add server machine agent install 接入",
        Capability.JOIN_TOKENS_MANAGE,
    ),
    Target(
        "leases",
        "rental",
        gettext_lazy("Leases"),
        "leases contracts rent cost money 租约 合同 费用",
        Capability.FLEET_VIEW,
    ),
    Target(
        "offers",
        "rental",
        gettext_lazy("Offers"),
        "offers order machine price gpu rent 可租 订购",
        Capability.FLEET_VIEW,
    ),
    Target(
        "operations", "rental", gettext_lazy("Operations"), "operations orders progress 操作", Capability.FLEET_VIEW
    ),
    Target(
        "drift", "rental", gettext_lazy("Differences"), "drift differences unknown machines 差异", Capability.FLEET_VIEW
    ),
    Target(
        "providers",
        "rental",
        gettext_lazy("Providers"),
        "providers accounts keys balance 供应商 账号",
        Capability.FLEET_VIEW,
    ),
    Target("events", "events", gettext_lazy("Events"), "events audit log history xid 事件", Capability.EVENTS_VIEW),
    Target(
        "settings",
        "settings",
        gettext_lazy("Your settings"),
        "profile language zone theme password 设置",
        Capability.PROFILE_EDIT,
    ),
    Target("settings-users", "users", gettext_lazy("Users"), "users people roles 用户", Capability.USERS_MANAGE),
    Target("settings-tokens", "key", gettext_lazy("API tokens"), "api tokens keys 令牌", Capability.TOKENS_OWN),
    Target(
        "settings-sessions",
        "screen",
        gettext_lazy("Sessions"),
        "sessions log out devices 会话",
        Capability.PROFILE_EDIT,
    ),
    Target(
        "settings-installation",
        "info",
        gettext_lazy("Installation"),
        "installation public url mirror version",
        Capability.HEALTH_VIEW,
    ),
    Target(
        "self-health", "health", gettext_lazy("Self-health"), "self-health status checks 自检", Capability.HEALTH_VIEW
    ),
)


def search(*, text: str, role: str) -> list[Hit]:
    """Return what matches of everything; for nothing the pages alone. Six queries at most."""
    wanted = text.strip()[:100]
    pages = _pages(wanted, role)
    if not wanted or not has_capability(role, Capability.FLEET_VIEW):
        return pages
    return [
        *_servers(wanted), *_gpus(wanted), *_endpoints(wanted), *_probes(wanted), *_leases(wanted), *_accounts(wanted), *pages,
    ]  # fmt: skip


def _pages(text: str, role: str) -> list[Hit]:
    found = []
    for target in PAGES:
        is_meant = text.casefold() in f"{target.label} {target.words}".casefold()
        if is_meant and has_capability(role, target.capability):
            found.append(Hit("page", target.icon, str(target.label), _("Page"), reverse(target.url_name)))
    return found


def _servers(text: str) -> list[Hit]:
    rows = Server.objects.filter(retired_at=None).filter(
        Q(name__icontains=text) | Q(provider__icontains=text) | Q(region__icontains=text)
    )
    return [
        Hit(
            "server",
            "fleet",
            row.name,
            " · ".join(filter(None, [kind_label(row.provider), row.region])),
            reverse("server", args=[row.pk]),
        )
        for row in rows.only("id", "name", "provider", "region").order_by("name")[:LIMIT]
    ]


def _endpoints(text: str) -> list[Hit]:
    return [
        Hit(
            "endpoint",
            "endpoints",
            row.name,
            f"{_('Endpoint')} · {row.get_phase_display()}",
            reverse("endpoint", args=[row.pk]),
        )
        for row in endpoint_list(search=text)[:LIMIT]
    ]


def _probes(text: str) -> list[Hit]:
    rows = Probe.objects.filter(Q(name__icontains=text) | Q(target__host__icontains=text)).order_by("name")
    return [
        Hit(
            "probe", "probes", row.name, f"{_('Probe')} · {row.target.get('host', '')}", reverse("probe", args=[row.pk])
        )
        for row in rows.only("id", "name", "target")[:LIMIT]
    ]


def _leases(text: str) -> list[Hit]:
    found = lease_list(search=text, is_open=True).prefetch_related(None)
    return [
        Hit(
            "lease",
            "rental",
            row.title,
            " · ".join(filter(None, [_("Lease"), row.name if row.name != row.title else "", row.get_state_display()])),
            reverse("lease", args=[row.pk]),
        )
        for row in found.order_by("name", "pk")[:LIMIT]
    ]


def _accounts(text: str) -> list[Hit]:
    rows = ProviderAccount.objects.filter(removed_at=None).filter(Q(name__icontains=text) | Q(kind__icontains=text))
    return [
        Hit("account", "key", row.name, f"{_('Account')} · {kind_label(row.kind)}", reverse("provider", args=[row.pk]))
        for row in rows.only("id", "name", "kind").order_by("name")[:LIMIT]
    ]


def _gpus(text: str) -> list[Hit]:
    rows = Gpu.objects.filter(removed_at=None, server__retired_at=None).filter(
        Q(uuid__icontains=text) | Q(name__icontains=text)
    )
    found = (
        rows.select_related("server")
        .only("id", "uuid", "name", "index", "server__name")
        .order_by("server__name", "index", "id")
    )
    return [_gpu(row) for row in found[:LIMIT]]


def _gpu(row: Gpu) -> Hit:
    where = row.server.name if row.index is None else f"{row.server.name} #{row.index}"
    return Hit("gpu", "gpu", row.name or row.uuid, f"{where} · {row.uuid}", reverse("gpu", args=[row.pk]))
