"""Which servers a simulated fleet has: their providers, cards, work and troubles. The first six make the default fleet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from fleet.simulation.cards import A100, H100, H200, L20, L40S, RTX_4090, T4
from fleet.simulation.profile import CardProfile

LoadKind = Literal["idle", "parked", "standby", "training", "inference", "video"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePlan:
    """One MIG instance and its work."""

    profile: str
    memory_mib: int
    streaming_multiprocessors: int
    slices: int
    load: LoadKind = "idle"
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlan:
    """One card and its work.

    cooling: 1.0 is good, 2 is a blocked fan. lost_every_seconds: falls off the bus and comes back. job: cards of one
    training job dip together. readings: what differs from the model (a link at half width, a remapped row).
    """

    profile: CardProfile
    load: LoadKind = "idle"
    process: str = ""
    cooling: float = 1.0
    job: int = 0
    lost_every_seconds: float | None = None
    instances: tuple[InstancePlan, ...] = ()
    readings: Mapping[str, int] = field(default_factory=dict)
    is_process_memory_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractPlan:
    """What a server costs: an amount as decimal text for one unit (hour, month). days_left: of the paid term, None without."""

    billing: Literal["hourly", "monthly", "spot"]
    amount: str
    currency: str
    unit: Literal["hour", "month"]
    days_left: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """One server. utc_offset_hours: where its users live. contract: None for one of one's own, which costs nothing."""

    name: str
    provider: str
    region: str
    utc_offset_hours: float
    driver_version: str
    cuda_version: int
    cards: tuple[CardPlan, ...]
    contract: ContractPlan | None = None


VLLM: Final = "VLLM::EngineCore"
SGLANG: Final = "sglang::scheduler"
TRAIN: Final = "torchrun train.py"


def _training_node() -> tuple[CardPlan, ...]:
    return (CardPlan(profile=H200, load="training", process=TRAIN, job=1),) * 8


def _serving_node() -> tuple[CardPlan, ...]:
    serving = CardPlan(profile=H100, load="inference", process=VLLM)
    divided = CardPlan(
        profile=H100,
        instances=(
            InstancePlan(
                profile="3g.40gb",
                memory_mib=40448,
                streaming_multiprocessors=60,
                slices=3,
                load="inference",
                process=VLLM,
            ),
            InstancePlan(
                profile="2g.20gb",
                memory_mib=20096,
                streaming_multiprocessors=32,
                slices=2,
                load="parked",
                process=SGLANG,
            ),
            InstancePlan(profile="1g.10gb", memory_mib=9984, streaming_multiprocessors=16, slices=1),
        ),
    )
    parked = CardPlan(profile=H100, load="parked", process=VLLM)
    return (serving,) * 4 + (
        divided,
        parked,
        CardPlan(profile=H100, load="standby", process=VLLM),
        CardPlan(profile=H100),
    )


def _mixed_node() -> tuple[CardPlan, ...]:
    job = CardPlan(profile=A100, load="training", process=TRAIN, job=2)
    hot = CardPlan(profile=A100, load="training", process=TRAIN, job=2, cooling=2.5)
    worn = CardPlan(
        profile=A100,
        load="inference",
        process=SGLANG,
        readings={
            "remapped_rows_correctable": 1,
            "ecc_corrected_volatile": 14,
            "ecc_corrected_aggregate": 391,
            "nvlink_replay_errors": 3,
        },
    )
    serving = CardPlan(profile=A100, load="inference", process=VLLM)
    return (job, job, job, hot, worn, serving, serving, CardPlan(profile=A100))


def _inference_node() -> tuple[CardPlan, ...]:
    serving = CardPlan(profile=L20, load="inference", process=VLLM)
    parked = CardPlan(profile=L20, load="parked", process=SGLANG)
    return (serving,) * 5 + (parked, parked, CardPlan(profile=L20, load="video", process="ffmpeg"))


def _geforce_node() -> tuple[CardPlan, ...]:
    serving = CardPlan(profile=RTX_4090, load="inference", process="python infer.py")
    narrow = CardPlan(profile=RTX_4090, load="inference", process="python infer.py", readings={"pcie_width": 8})
    hidden = CardPlan(profile=RTX_4090, load="training", process="python finetune.py", is_process_memory_hidden=True)
    return (serving, narrow, hidden, CardPlan(profile=RTX_4090))


def _unreliable_node() -> tuple[CardPlan, ...]:
    steady = CardPlan(profile=RTX_4090, load="training", process="python finetune.py", job=3)
    falling = CardPlan(profile=RTX_4090, load="training", process="python finetune.py", job=3, lost_every_seconds=420)
    return (steady, falling, steady, CardPlan(profile=RTX_4090, load="parked", process="python ui.py"))


def _media_node() -> tuple[CardPlan, ...]:
    retired = CardPlan(profile=T4, load="video", process="ffmpeg", readings={"retired_pages_single_bit": 1})
    return (retired, CardPlan(profile=T4, load="video", process="deepstream-app"))


def _rendering_node() -> tuple[CardPlan, ...]:
    serving = CardPlan(profile=L40S, load="inference", process=VLLM)
    return (serving, serving, CardPlan(profile=L40S, load="parked", process=VLLM), CardPlan(profile=L40S))


TEMPLATES: Final = (
    (
        "hefei-h200",
        "合肥机房",
        "安徽合肥",
        8.0,
        "590.48.01",
        13010,
        _training_node,
        ContractPlan(billing="monthly", amount="96000", currency="CNY", unit="month", days_left=6),
    ),
    (
        "runpod-h100",
        "RunPod",
        "US-TX-3",
        -6.0,
        "570.133.20",
        12080,
        _serving_node,
        ContractPlan(billing="hourly", amount="21.52", currency="USD", unit="hour"),
    ),
    (
        "aliyun-a100",
        "Alibaba Cloud",
        "cn-hangzhou",
        8.0,
        "535.183.01",
        12020,
        _mixed_node,
        ContractPlan(billing="monthly", amount="58800", currency="CNY", unit="month", days_left=19),
    ),
    (
        "tencent-l20",
        "腾讯云",
        "ap-shanghai",
        8.0,
        "560.35.05",
        12060,
        _inference_node,
        ContractPlan(billing="hourly", amount="30.96", currency="CNY", unit="hour"),
    ),
    (
        "autodl-4090",
        "AutoDL",
        "北京B区",
        8.0,
        "570.133.20",
        12080,
        _geforce_node,
        ContractPlan(billing="hourly", amount="7.92", currency="CNY", unit="hour"),
    ),
    (
        "vast-4090",
        "Vast.ai",
        "SE",
        1.0,
        "580.95.05",
        13000,
        _unreliable_node,
        ContractPlan(billing="spot", amount="1.24", currency="USD", unit="hour"),
    ),
    (
        "aws-t4",
        "AWS",
        "us-east-1",
        -5.0,
        "515.105.01",
        11070,
        _media_node,
        ContractPlan(billing="hourly", amount="1.05", currency="USD", unit="hour"),
    ),
    (
        "lambda-l40s",
        "Lambda",
        "us-west-1",
        -8.0,
        "590.48.01",
        13010,
        _rendering_node,
        ContractPlan(billing="hourly", amount="4.36", currency="USD", unit="hour"),
    ),
)


def fleet_plan(servers: int) -> list[ServerPlan]:
    """Return the plans of so many servers: the templates in turn, numbered from 01 in each turn."""
    plans = []
    for number in range(servers):
        name, provider, region, offset, driver, cuda, cards, contract = TEMPLATES[number % len(TEMPLATES)]
        plans.append(
            ServerPlan(
                name=f"{name}-{number // len(TEMPLATES) + 1:02d}",
                provider=provider,
                region=region,
                utc_offset_hours=offset,
                driver_version=driver,
                cuda_version=cuda,
                cards=cards(),
                contract=contract,
            )
        )
    return plans
