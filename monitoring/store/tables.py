"""Names and shapes of the store's tables, one description for each kind of subject."""

from dataclasses import dataclass, field
from typing import Final

from monitoring.metrics import ENGINE_METRICS, GPU_METRICS, HOST_METRICS, Metric
from panel.core.partitions import DailyTable

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000
HOURS_PER_DAY: Final = 24
ROLLUP_SECONDS: Final = (60, 300, 3600)
MINUTE, FIVE_MINUTES, HOUR = ROLLUP_SECONDS


@dataclass(frozen=True, slots=True)
class SubjectKind:
    """What has samples. code stands in the shared tables, `name` in the API; has_reasons: clock event reasons are kept."""

    name: str
    code: int
    samples: DailyTable
    rollup_prefix: str
    metrics: tuple[Metric, ...]
    has_reasons: bool

    columns: tuple[str, ...] = field(init=False)  # of the metrics, in the order of the catalogue

    def __post_init__(self) -> None:
        """Read the names once: stores and lists ask for them at every row."""
        object.__setattr__(self, "columns", tuple(metric.name for metric in self.metrics))

    def rollup_table(self, seconds: int) -> str:
        """Return the table of the rollups with slots of so many seconds."""
        return f"{self.rollup_prefix}_{seconds}"


GPU: Final = SubjectKind("gpu", 1, DailyTable("gpu_sample"), "gpu_rollup", GPU_METRICS, has_reasons=True)
HOST: Final = SubjectKind("server", 2, DailyTable("host_sample"), "host_rollup", HOST_METRICS, has_reasons=False)
ENGINE: Final = SubjectKind(
    "replica", 3, DailyTable("engine_sample"), "engine_rollup", ENGINE_METRICS, has_reasons=False
)
KINDS: Final = (GPU, HOST, ENGINE)
