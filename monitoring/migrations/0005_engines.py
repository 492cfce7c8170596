"""Samples of engines like those of cards and hosts, and histograms of their requests: minutes in partitions, hours as rows.

The columns stand here as they were when this migration was written; a metric added later comes with a migration of its own.
"""

from django.db import migrations, models

METRICS = """
    running waiting kv_cache_percent preemptions_per_second prompt_tokens_per_second generation_tokens_per_second
    requests_per_second own_requests_per_second
""".split()
ROLLUP_SECONDS = (60, 300, 3600)


def columns(kind):
    return ", ".join(f"{name} {kind}" for name in METRICS)


def rollup(table):
    storage = ", ".join(f"ALTER {name} SET STORAGE EXTERNAL" for name in METRICS)
    return f"""
        CREATE TABLE {table} (
            subject_id integer NOT NULL, hour integer NOT NULL, {columns("bytea")}, PRIMARY KEY (subject_id, hour)
        ) WITH (toast_tuple_target = 8160);
        ALTER TABLE {table} {storage};
    """


class Migration(migrations.Migration):
    dependencies = [("monitoring", "0004_probe_run")]

    operations = [
        migrations.RunSQL(
            f"""
            CREATE TABLE engine_sample (
                subject_id integer NOT NULL, at timestamptz NOT NULL, {columns("real")}
            ) PARTITION BY RANGE (at);
            CREATE INDEX engine_sample_at ON engine_sample USING brin (at) WITH (pages_per_range = 16, autosummarize = on);
            CREATE TABLE engine_histogram (
                subject_id integer NOT NULL, name smallint NOT NULL, at timestamptz NOT NULL,
                bounds double precision[] NOT NULL, counts bigint[] NOT NULL, sum_seconds double precision
            ) PARTITION BY RANGE (at);
            CREATE INDEX engine_histogram_subject ON engine_histogram (subject_id, name, at);
            """,
            "DROP TABLE engine_sample; DROP TABLE engine_histogram",
        ),
        migrations.RunSQL(
            "".join(rollup(f"engine_rollup_{seconds}") for seconds in ROLLUP_SECONDS),
            "".join(f"DROP TABLE engine_rollup_{seconds};" for seconds in ROLLUP_SECONDS),
        ),
        migrations.CreateModel(
            name="EngineHour",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject_id", models.IntegerField()),
                ("name", models.SmallIntegerField()),
                ("hour_at", models.DateTimeField()),
                ("bounds", models.JSONField()),
                ("bounds_digest", models.CharField(max_length=32)),
                ("counts", models.JSONField()),
                ("sum_seconds", models.FloatField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subject_id", "name", "hour_at", "bounds_digest"), name="enginehour_unique"
                    )
                ],
            },
        ),
    ]
