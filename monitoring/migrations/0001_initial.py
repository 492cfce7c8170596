from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='DirtyHour',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.SmallIntegerField()),
                ('subject_id', models.IntegerField()),
                ('hour', models.IntegerField()),
            ],
            options={
                'db_table': 'dirty_hour',
            },
        ),
        migrations.CreateModel(
            name='LatestSample',
            fields=[
                ('pk', models.CompositePrimaryKey('kind', 'subject_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', models.SmallIntegerField()),
                ('subject_id', models.IntegerField()),
                ('at', models.DateTimeField()),
                ('received_at', models.DateTimeField()),
                ('values', models.BinaryField()),
                ('clock_event_reasons', models.IntegerField(null=True)),
                ('performance_state', models.SmallIntegerField(null=True)),
            ],
            options={
                'db_table': 'latest_sample',
            },
        ),
        migrations.CreateModel(
            name='SealedDay',
            fields=[
                ('pk', models.CompositePrimaryKey('kind', 'subject_id', 'day', 'metric', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', models.SmallIntegerField()),
                ('subject_id', models.IntegerField()),
                ('day', models.IntegerField()),
                ('metric', models.SmallIntegerField()),
                ('data', models.BinaryField()),
            ],
            options={
                'db_table': 'sealed_day',
            },
        ),
        migrations.CreateModel(
            name='SealedHour',
            fields=[
                ('pk', models.CompositePrimaryKey('kind', 'subject_id', 'hour', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', models.SmallIntegerField()),
                ('subject_id', models.IntegerField()),
                ('hour', models.IntegerField()),
                ('samples', models.IntegerField()),
                ('data', models.BinaryField()),
            ],
            options={
                'db_table': 'sealed_hour',
            },
        ),
        migrations.CreateModel(
            name='SeriesProgress',
            fields=[
                ('pk', models.CompositePrimaryKey('kind', 'step', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', models.SmallIntegerField()),
                ('step', models.CharField(max_length=8)),
                ('until_ms', models.BigIntegerField()),
            ],
            options={
                'db_table': 'series_progress',
            },
        ),
    ]
