"""The world of the simulated provider: machines that only stand in this table."""

from django.db import models

from panel.core.crypto import EncryptedTextField


class SimulatedMachine(models.Model):
    """A machine of the simulated provider; what it does follows from these times and the clock.

    world: the account that it belongs to. preempted_at: when a spot machine is taken back, if ever. startup_script: what it
    runs at its first start, a join token in it; wiped at its end.
    """

    world = models.CharField(max_length=64, db_index=True)
    name = models.CharField(max_length=200)
    client_token = models.CharField(max_length=200)
    offer_key = models.CharField(max_length=200)
    startup_script = EncryptedTextField(blank=True, default="")
    created_at = models.DateTimeField()
    running_from = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)
    preempted_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["world", "client_token"], name="simulatedmachine_once")]

    def __str__(self) -> str:
        return self.name
