"""Minutes of cards and engines as they lie in the rollups."""

import numpy as np

from monitoring.store.rollup import empty
from monitoring.store.rollup_rows import rollup_load, rollup_save
from monitoring.store.tables import GPU, MINUTE

SAMPLES = 12  # of a minute, every 5 s


def put_minutes(subject, first, minutes, *, kind=GPU, **metrics):
    """Write the same readings into some minutes from `first` on; what is not given was not read."""
    start = int(first.timestamp()) // 60
    for hour in range(start // 60, (start + minutes - 1) // 60 + 1):
        stats = rollup_load(kind, MINUTE, subject_ids=[subject], hour=hour).get(subject) or empty(60, len(kind.columns))
        span = slice(max(start - hour * 60, 0), min(start + minutes - hour * 60, 60))
        for name, value in metrics.items():
            column = kind.columns.index(name)
            for array in (stats.average, stats.maximum, stats.minimum):
                array[span, column] = np.float32(value)
            stats.count[span, column] = SAMPLES
        rollup_save(kind, MINUTE, hour=hour, stats={subject: stats})
