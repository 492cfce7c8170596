"""Reports: what was asked, what each place measured, what it comes to."""

from django.db import models
from django.db.models import Q

from monitoring.diagnosing.enums import ReportCause, ReportFailure, ReportState
from monitoring.probing.models import Probe
from panel.core.crypto import EncryptedTextField


class DiagnosisReport(models.Model):
    """One diagnosis. Nothing in it changes when its subject does: it keeps its own copy of what was measured.

    subject_kind: `endpoint` or `probe`. target: of the probe, without secrets; bearer, host_bearer: what it shows outside and on
    the host, forgotten when it ends. metric, threshold_ms, percentile: the objective. begin_at: of slot 0, by the panel's clock.
    places: see `monitoring.diagnosing.places.Place`. sweeps: bounds of fleet.agent.rounds.plan.Sweeps, null without consent.
    context: what else is known of the subject (`monitoring.diagnosing.asked.Subject`). found: by the place's key, in the shape
    of fleet.agent.rounds.plan.Found. evidence: of the same minutes: cards, processors, markers. diagnosis:
    monitoring.diagnosis.report.Diagnosis as JSON. heard_at: of the panel's own prober.
    """

    state = models.CharField(max_length=16, choices=ReportState.choices, default=ReportState.RUNNING)
    cause = models.CharField(max_length=16, choices=ReportCause.choices, default=ReportCause.PERSON)
    probe = models.ForeignKey(Probe, on_delete=models.SET_NULL, null=True, related_name="reports")
    subject_kind = models.CharField(max_length=16)
    subject_id = models.BigIntegerField()
    subject_name = models.CharField(max_length=100)
    target = models.JSONField()
    bearer = EncryptedTextField(blank=True, default="")
    host_bearer = EncryptedTextField(blank=True, default="")
    metric = models.CharField(max_length=8)
    threshold_ms = models.FloatField()
    percentile = models.FloatField(default=0.95)
    begin_at = models.DateTimeField()
    slot_seconds = models.FloatField()
    rounds = models.PositiveSmallIntegerField()
    sweeps = models.JSONField(null=True)
    places = models.JSONField(default=list)
    context = models.JSONField(default=dict)
    found = models.JSONField(default=dict)
    evidence = models.JSONField(default=dict)
    diagnosis = models.JSONField(null=True)
    verdict = models.CharField(max_length=24, blank=True, default="")
    level = models.CharField(max_length=8, blank=True, default="")
    progress = models.JSONField(default=dict)
    heard_at = models.DateTimeField(null=True)
    failure = models.CharField(max_length=16, choices=ReportFailure.choices, blank=True, default="")
    detail = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    created_by_name = models.CharField(max_length=200)
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=ReportState.values), name="diagnosis_state_known"),
            models.CheckConstraint(condition=Q(cause__in=ReportCause.values), name="diagnosis_cause_known"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], condition=Q(state="running"), name="diagnosis_one_running"
            ),
        ]
        indexes = [
            models.Index(fields=["subject_kind", "subject_id", "-created_at"], name="diagnosis_by_subject"),
            models.Index(fields=["-created_at"], name="diagnosis_newest"),
        ]

    def __str__(self) -> str:
        return f"diagnosis {self.pk} of {self.subject_name}"
