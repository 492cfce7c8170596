"""What pages remember of a person, beside their settings."""

from django.conf import settings
from django.db import models


class TableColumns(models.Model):
    """The columns that a person chose for one table, by key."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="table_columns")
    table = models.CharField(max_length=32)
    columns = models.JSONField(default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "table"], name="tablecolumns_unique")]

    def __str__(self) -> str:
        return f"{self.table} of {self.user_id}"
