"""Long calls to providers, as things that people can watch: steps, elapsed and usual time, outcome."""

from django.db import models

from fleet.enums import OperationKind, OperationState
from fleet.models.leasing import Lease, ProviderAccount
from fleet.models.machines import Server
from fleet.reasons import Reason


class Operation(models.Model):
    """One thing that somebody asked of a provider, from asking to outcome.

    request: what was asked for, JSON-ready, no secret. steps: [{name, state, started_at, ended_at, detail}], in order.
    idempotency_key: of who asked, unique per actor; asking again with it returns this row. attempts: calls
    that were made, sent_at: when the last one was sent, committed before it is; taken back when the provider surely did nothing.
    deadline_at: after it the operation has failed, not the
    machine; null: it never gives up (ending a machine).
    """

    kind = models.CharField(max_length=16, choices=OperationKind.choices)
    state = models.CharField(max_length=16, choices=OperationState.choices, default=OperationState.PENDING)
    reason = models.CharField(max_length=32, choices=Reason.choices, blank=True, default="")
    detail = models.CharField(max_length=500, blank=True, default="")
    account = models.ForeignKey(ProviderAccount, on_delete=models.PROTECT, null=True, related_name="operations")
    lease = models.ForeignKey(Lease, on_delete=models.CASCADE, null=True, related_name="operations")
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="operations")
    request = models.JSONField(default=dict)
    result = models.JSONField(default=dict)
    steps = models.JSONField(default=list)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=200)
    idempotency_key = models.CharField(max_length=128, blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["actor_kind", "actor_id", "idempotency_key"],
                condition=~models.Q(idempotency_key=""),
                name="operation_idempotent",
            ),
            models.CheckConstraint(condition=models.Q(state__in=OperationState.values), name="operation_state_known"),
            models.CheckConstraint(condition=models.Q(kind__in=OperationKind.values), name="operation_kind_known"),
        ]
        indexes = [
            models.Index(fields=["lease"], condition=models.Q(ended_at=None), name="operation_open"),
            models.Index(fields=["lease", "-created_at"], name="operation_by_lease"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk}"
