"""The shapes of probes, their results and percentiles in the API."""

from typing import Any

from rest_framework import serializers

from monitoring.probing.models import Probe
from monitoring.probing.tables import CONNECTIONS, METRICS


class ProbeSerializer(serializers.ModelSerializer[Probe]):
    """One target, probed from some places."""

    class Meta:
        model = Probe
        fields = [
            "id", "name", "target", "interval_seconds", "vantages", "subject_kind", "subject_id", "metric",
            "threshold_ms", "is_enabled", "created_at", "created_by_name",
        ]  # fmt: skip
        read_only_fields = fields


class ProbeSettingsSerializer(serializers.Serializer[Any]):
    """What a probe is made of."""

    name = serializers.CharField(max_length=100)
    target = serializers.DictField(help_text="kind, host, port, path, …: see the documentation of probes.")
    bearer = serializers.CharField(
        max_length=1000, allow_blank=True, required=False, write_only=True, help_text="Sent as Authorization."
    )
    interval_seconds = serializers.FloatField(min_value=1, max_value=86_400, required=False)
    vantages = serializers.ListField(
        child=serializers.CharField(max_length=32), max_length=500, required=False,
        help_text="`panel`, `agents` (all), `server:<id>`.",
    )  # fmt: skip
    subject_kind = serializers.ChoiceField(["", "endpoint"], required=False)
    subject_id = serializers.IntegerField(min_value=1, max_value=2**62, required=False, allow_null=True)
    metric = serializers.ChoiceField(METRICS, required=False)
    threshold_ms = serializers.FloatField(min_value=0.001, max_value=3_600_000, required=False, allow_null=True)
    is_enabled = serializers.BooleanField(required=False)


class ProbeCheckSerializer(serializers.Serializer[Any]):
    """What is tried."""

    target = serializers.DictField(help_text="As of a probe.")
    bearer = serializers.CharField(max_length=1000, allow_blank=True, required=False, write_only=True)


class PercentileSerializer(serializers.Serializer[Any]):
    """A percentile of n durations."""

    q = serializers.FloatField()
    n = serializers.IntegerField()
    value_ms = serializers.FloatField(allow_null=True, help_text="null: none, or over the timeout (`is_over`).")
    is_over = serializers.BooleanField(help_text="It lies among the failures.")
    is_enough = serializers.BooleanField(help_text="Whether n is large enough to show it.")
    low_ms = serializers.FloatField(allow_null=True)
    high_ms = serializers.FloatField(allow_null=True)


class VantageLatencySerializer(serializers.Serializer[Any]):
    """What one place found."""

    server = serializers.IntegerField(allow_null=True, help_text="null: the panel.")
    connection = serializers.ChoiceField(CONNECTIONS)
    failures = serializers.IntegerField()
    share_over = serializers.FloatField(allow_null=True, help_text="Over the threshold, failures included.")
    percentiles = PercentileSerializer(many=True)


class LatencyStepSerializer(serializers.Serializer[Any]):
    """One step of a series."""

    at = serializers.DateTimeField()
    percentiles = PercentileSerializer(many=True)


class LatencyLineSerializer(serializers.Serializer[Any]):
    """One place's series."""

    server = serializers.IntegerField(allow_null=True)
    connection = serializers.ChoiceField(CONNECTIONS)
    steps = LatencyStepSerializer(many=True)


class ProbeLatencySerializer(serializers.Serializer[Any]):
    """Percentiles of a range as a whole, and step by step; places are never pooled."""

    metric = serializers.ChoiceField(METRICS)
    step_seconds = serializers.IntegerField()
    is_exact = serializers.BooleanField(
        help_text="Of every single result; false for a range beyond 90 days: from hourly histograms, right to 1.1 %."
    )
    vantages = VantageLatencySerializer(many=True)
    series = LatencyLineSerializer(many=True)


class ProbeResultSerializer(serializers.Serializer[Any]):
    """One result: every phase in ms, null where it did not happen."""

    server = serializers.IntegerField(allow_null=True, help_text="null: the panel.")
    connection = serializers.ChoiceField(CONNECTIONS)
    started_at = serializers.DateTimeField()
    outcome = serializers.CharField()
    reason = serializers.CharField()
    is_suspect = serializers.BooleanField(help_text="This place was not well; not alerted on.")
    facts = serializers.DictField(help_text="Phases, address, status, tokens, …")
