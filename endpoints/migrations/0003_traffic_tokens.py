"""How many tokens went through, where callers with keys made them countable."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("endpoints", "0002_slots")]

    operations = [
        migrations.AddField(
            model_name="endpointtraffic",
            name="tokens",
            field=models.PositiveBigIntegerField(null=True),
        ),
    ]
