"""How the time of a run is counted: agreed on a lease, kept with each of its runs."""

from django.db import migrations, models


def _field(model, name, default):
    return migrations.AddField(model_name=model, name=name, field=models.PositiveIntegerField(default=default))


class Migration(migrations.Migration):
    dependencies = [("fleet", "0011_load_jobs")]

    operations = [
        _field(model, name, default)
        for model in ("lease", "billedinterval")
        for name, default in (("step_seconds", 1), ("least_seconds", 0), ("free_seconds", 0))
    ]
