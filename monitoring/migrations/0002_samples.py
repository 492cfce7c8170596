"""Samples by daily partitions and rollups: tables with one column for each metric.

The columns stand here as they were when this migration was written; a metric added later comes with a migration of its own.
"""

from django.db import migrations

GPU_METRICS = """
    utilization_percent memory_busy_percent memory_used_bytes power_watts energy_power_watts temperature_celsius
    memory_temperature_celsius sm_clock_mhz memory_clock_mhz encoder_percent decoder_percent fan_percent
    pcie_tx_bytes_per_second pcie_rx_bytes_per_second nvlink_tx_bytes_per_second nvlink_rx_bytes_per_second
    throttled_percent power_capped_percent sm_activity_percent tensor_activity_percent dram_activity_percent
""".split()
HOST_METRICS = """
    cpu_percent memory_used_bytes swap_used_bytes load_1m disk_used_bytes disk_read_bytes_per_second
    disk_write_bytes_per_second network_receive_bytes_per_second network_transmit_bytes_per_second agent_cpu_percent
    agent_memory_bytes
""".split()


def columns(names, kind):
    return ", ".join(f"{name} {kind}" for name in names)


def samples(table, names, extra):
    return f"""
        CREATE TABLE {table} (
            subject_id integer NOT NULL, at timestamptz NOT NULL, {columns(names, "real")}{extra}
        ) PARTITION BY RANGE (at);
        CREATE INDEX {table}_at ON {table} USING brin (at) WITH (pages_per_range = 16, autosummarize = on);
    """


def rollup(table, names):
    """Rows are read whole by key; already compressed or tiny, so Postgres neither compresses nor moves them out early."""
    storage = ", ".join(f"ALTER {name} SET STORAGE EXTERNAL" for name in names)
    return f"""
        CREATE TABLE {table} (
            subject_id integer NOT NULL, hour integer NOT NULL, {columns(names, "bytea")}, PRIMARY KEY (subject_id, hour)
        ) WITH (toast_tuple_target = 8160);
        ALTER TABLE {table} {storage};
    """


ROLLUPS = [("gpu_rollup", GPU_METRICS), ("host_rollup", HOST_METRICS)]
ROLLUP_SECONDS = (60, 300, 3600)


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0001_initial")]

    operations = [
        migrations.RunSQL(
            samples("gpu_sample", GPU_METRICS, ", clock_event_reasons integer") + samples("host_sample", HOST_METRICS, ""),
            "DROP TABLE gpu_sample; DROP TABLE host_sample",
        ),
        migrations.RunSQL(
            "".join(rollup(f"{prefix}_{seconds}", names) for prefix, names in ROLLUPS for seconds in ROLLUP_SECONDS),
            "".join(f"DROP TABLE {prefix}_{seconds};" for prefix, _ in ROLLUPS for seconds in ROLLUP_SECONDS),
        ),
        migrations.RunSQL(
            """
            ALTER TABLE latest_sample SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1);
            ALTER TABLE latest_sample ALTER values SET STORAGE PLAIN;
            ALTER TABLE sealed_hour ALTER data SET STORAGE EXTERNAL;
            ALTER TABLE sealed_day ALTER data SET STORAGE EXTERNAL;
            """,
            migrations.RunSQL.noop,
        ),
    ]
