"""The table of histograms, which lives in SQL: names, codes, how long what is kept."""

from typing import Final, get_args

from fleet.agent.wire_engines import HistogramName
from panel.core.partitions import DailyTable

HISTOGRAMS: Final = DailyTable("engine_histogram")
NAMES: Final[tuple[str, ...]] = get_args(HistogramName)  # by their codes: append only
KEPT_DAYS: Final = 8
