"""What the metrics page of each engine has; requests of our own probes beside the traffic of callers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("endpoints", "0003_traffic_tokens")]

    operations = [
        migrations.AddField(model_name="replica", name="metrics", field=models.JSONField(default=dict)),
        migrations.AddField(
            model_name="endpointtraffic", name="probes", field=models.PositiveIntegerField(default=0)
        ),
    ]
