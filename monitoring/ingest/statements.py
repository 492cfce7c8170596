"""What one group commit says to Postgres: one statement for everything but the samples, then COPY."""

import math
import re
from typing import TYPE_CHECKING, Final

import numpy as np

from monitoring.ingest import arrays
from monitoring.ingest.batch import Batch, Samples
from monitoring.ingest.pack import pack
from monitoring.store.tables import ENGINE, GPU, HOST, HOUR_MS, SubjectKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATE_AFTER_MS: Final = 90_000  # rollups re-read so much; what comes later marks its hour dirty

# Streams advance in one order everywhere, so that two processes never wait for each other crosswise. A batch that does
# not advance its stream was stored before: its rows are left out of everything below, and of the COPY that follows.
_ADVANCE: Final = """
WITH report AS (
    SELECT * FROM unnest(
        %(agents)s::bigint[], %(boots)s::uuid[], %(seqs)s::bigint[], %(received)s::timestamptz[], %(skews)s::float8[],
        %(spooled)s::int[], %(lost)s::bigint[], %(addresses)s::text[], %(versions)s::text[]
    ) WITH ORDINALITY AS t (agent_id, boot_id, seq, received_at, skew, spooled, lost, address, version, number)
), stored AS (
    INSERT INTO fleet_agentstream AS stream (agent_id, boot_id, last_seq, last_at)
    SELECT agent_id, boot_id, seq, received_at FROM report ORDER BY agent_id, boot_id
    ON CONFLICT (agent_id, boot_id) DO UPDATE SET last_seq = excluded.last_seq, last_at = excluded.last_at
    WHERE stream.last_seq < excluded.last_seq
    RETURNING agent_id
), seen AS (
    UPDATE fleet_agent AS agent
    SET last_seen_at = greatest(agent.last_seen_at, report.received_at), clock_skew_seconds = nullif(report.skew, 'NaN'),
        spooled_batches = report.spooled, lost_samples = report.lost,
        last_address = coalesce(report.address::inet, agent.last_address), version = report.version
    FROM report WHERE agent.id = report.agent_id
), gpu AS (
    SELECT * FROM unnest(
        %(gpu_owners)s::int[], %(gpu_subjects)s::int[], %(gpu_at)s::timestamptz[], %(gpu_values)s::bytea[],
        %(gpu_reasons)s::int[], %(gpu_states)s::smallint[]
    ) AS t (number, subject_id, at, packed, reasons, performance_state)
), host AS (
    SELECT * FROM unnest(%(host_owners)s::int[], %(host_subjects)s::int[], %(host_at)s::timestamptz[], %(host_values)s::bytea[])
    AS t (number, subject_id, at, packed)
), engine AS (
    SELECT * FROM unnest(
        %(engine_owners)s::int[], %(engine_subjects)s::int[], %(engine_at)s::timestamptz[], %(engine_values)s::bytea[]
    ) AS t (number, subject_id, at, packed)
), newest AS (
    SELECT number, %(gpu_code)s::smallint AS kind, subject_id, at, packed, nullif(reasons, -1) AS reasons,
        nullif(performance_state, -1::smallint) AS performance_state FROM gpu
    UNION ALL SELECT number, %(host_code)s::smallint, subject_id, at, packed, NULL, NULL FROM host
    UNION ALL SELECT number, %(engine_code)s::smallint, subject_id, at, packed, NULL, NULL FROM engine
), latest AS (
    INSERT INTO latest_sample AS old
        (kind, subject_id, at, received_at, values, clock_event_reasons, performance_state)
    SELECT kind, subject_id, at, received_at, packed, reasons, performance_state
    FROM newest JOIN report USING (number) JOIN stored USING (agent_id) ORDER BY kind, subject_id
    ON CONFLICT (kind, subject_id) DO UPDATE SET at = excluded.at, received_at = excluded.received_at,
        values = excluded.values, clock_event_reasons = excluded.clock_event_reasons,
        performance_state = excluded.performance_state
    WHERE old.at <= excluded.at
), late AS (
    INSERT INTO dirty_hour (kind, subject_id, hour)
    SELECT kind, subject_id, hour
    FROM unnest(%(late_owners)s::int[], %(late_kinds)s::smallint[], %(late_subjects)s::int[], %(late_hours)s::int[])
        AS t (number, kind, subject_id, hour) JOIN report USING (number) JOIN stored USING (agent_id)
)
SELECT number::int FROM report JOIN stored USING (agent_id)
"""
_PLACE: Final = re.compile(r"%\((\w+)\)s")
_NAMES: Final = tuple(_PLACE.findall(_ADVANCE))
ADVANCE: Final = _PLACE.sub(lambda place: f"${_NAMES.index(place[1]) + 1}", _ADVANCE)


_PREFIXES: Final = {GPU.code: "gpu", HOST.code: "host", ENGINE.code: "engine"}


def advance_parameters(
    batches: list[Batch], gpu: Samples, host: Samples, engine: Samples, *, now_ms: float
) -> list[bytes]:
    """Return the parameters of `ADVANCE` in its order, in binary. The batches must be of different agents."""
    parameters = {
        "gpu_code": GPU.code.to_bytes(2, "big"),
        "host_code": HOST.code.to_bytes(2, "big"),
        "engine_code": ENGINE.code.to_bytes(2, "big"),
        "agents": arrays.bigints([batch.identity.agent_id for batch in batches]),
        "boots": arrays.uuids([batch.boot_id for batch in batches]),
        "seqs": arrays.bigints([batch.seq for batch in batches]),
        "received": arrays.times(np.array([batch.received_ms for batch in batches]).astype(np.int64)),
        "skews": arrays.doubles([_nan_of(batch.clock.skew_seconds) for batch in batches]),
        "spooled": arrays.integers([min(max(batch.spooled_batches, 0), 2**31 - 1) for batch in batches]),
        "lost": arrays.bigints([min(max(batch.lost_samples, 0), 2**62) for batch in batches]),
        "addresses": arrays.texts([batch.address for batch in batches]),
        "versions": arrays.texts([batch.version for batch in batches]),
        **_newest_parameters(gpu),
        **_newest_parameters(host),
        **_newest_parameters(engine),
        **_late_parameters(gpu, host, engine, now_ms=now_ms),
    }
    return [parameters[name] for name in _NAMES]


def _nan_of(value: float | None) -> float:
    return math.nan if value is None else value


def _newest_parameters(samples: Samples) -> dict[str, bytes]:
    rows = samples.newest
    prefix = _PREFIXES[samples.kind.code]
    parameters = {
        f"{prefix}_owners": arrays.integers(samples.owners[rows] + 1),
        f"{prefix}_subjects": arrays.integers(samples.subjects[rows]),
        f"{prefix}_at": arrays.times(samples.at_ms[rows]),
        f"{prefix}_values": arrays.blobs(samples.values[rows]),
    }
    if samples.kind is GPU:
        parameters["gpu_reasons"] = arrays.integers(samples.reasons[rows])
        parameters["gpu_states"] = arrays.smallints(samples.performance_states[rows])
    return parameters


def _late_parameters(*sets: Samples, now_ms: float) -> dict[str, bytes]:
    """Return the hours that got samples later than rollups wait for them, each once for a subject and batch."""
    found: list[NDArray[np.int64]] = []
    for samples in sets:
        late = np.flatnonzero(samples.at_ms < now_ms - LATE_AFTER_MS)
        if not len(late):
            continue
        kinds = np.full(len(late), samples.kind.code)
        rows = np.column_stack(
            [samples.owners[late] + 1, kinds, samples.subjects[late], samples.at_ms[late] // HOUR_MS]
        )
        found.append(np.unique(rows.astype(np.int64), axis=0))
    hours = np.concatenate(found) if found else np.empty((0, 4), dtype=np.int64)
    names = ("late_owners", "late_kinds", "late_subjects", "late_hours")
    parameters = {name: arrays.integers(hours[:, column]) for column, name in enumerate(names)}
    return parameters | {"late_kinds": arrays.smallints(hours[:, 1])}


def copy_statement(kind: SubjectKind) -> str:
    """Return the COPY of samples of this kind; columns by name, so that a table altered meanwhile still fits."""
    reasons = ", clock_event_reasons" if kind.has_reasons else ""
    return f"COPY {kind.samples.name} (subject_id, at, {', '.join(kind.columns)}{reasons}) FROM STDIN (FORMAT BINARY)"


def copy_stream(samples: Samples) -> bytes:
    """Return what follows `copy_statement`."""
    reasons = samples.reasons if samples.kind.has_reasons else None
    return pack(samples.subjects, samples.at_ms, samples.values, reasons)
