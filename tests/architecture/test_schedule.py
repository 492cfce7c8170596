"""What beat sends is what workers know."""

import pytest

from panel.celery import app
from panel.schedule import BEAT_SCHEDULE


@pytest.fixture(scope="module", autouse=True)
def _tasks():
    app.loader.import_default_modules()


@pytest.mark.parametrize("name", BEAT_SCHEDULE)
def test_every_entry_is_a_task_that_expires_before_it_piles_up(name):
    entry = BEAT_SCHEDULE[name]
    assert entry["task"] in app.tasks
    assert 0 < entry["options"]["expires"] <= 24 * 3600
    if isinstance(entry["schedule"], float):
        assert entry["schedule"] >= 1
        assert entry["options"]["expires"] <= max(entry["schedule"], 3600)


def test_no_task_may_run_so_long_that_the_broker_hands_it_out_again():
    visible = app.conf.broker_transport_options["visibility_timeout"]
    limits = {name: task.time_limit or app.conf.task_time_limit for name, task in app.tasks.items()}
    assert {name: limit for name, limit in limits.items() if limit >= visible} == {}


def test_messages_are_json_and_tasks_are_repeatable():
    assert app.conf.task_serializer == "json"
    assert app.conf.accept_content == ["json"]
    assert app.conf.task_acks_late
    assert app.conf.worker_prefetch_multiplier == 1
    assert app.conf.task_soft_time_limit < app.conf.task_time_limit
    assert app.conf.task_ignore_result
