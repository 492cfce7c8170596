"""Jobs of the time-series store that the clock starts. Each may run twice, or be killed, at any point."""

from celery import shared_task

from monitoring import services
from monitoring.alerts.services import alerts_evaluate, alerts_forget
from monitoring.engines import keeping as engines
from monitoring.golive_runs.following import golive_tick
from monitoring.probing.services import hours_sum_up, result_partitions_make, results_forget
from monitoring.waste.judging import waste_judge
from panel.core.clock import now


@shared_task(name="monitoring.tasks.store_tick", soft_time_limit=240, time_limit=280)
def store_tick_task() -> None:
    """Close hours, redo what came late, bring rollups up to now."""
    services.store_tick(now=now())


@shared_task(name="monitoring.tasks.store_fold", soft_time_limit=240, time_limit=280)
def store_fold_task() -> None:
    """Fold closed days into blocks."""
    services.store_fold(now=now())


@shared_task(name="monitoring.tasks.store_forget", soft_time_limit=240, time_limit=280)
def store_forget_task() -> None:
    """Remove what is older than its retention."""
    services.store_forget(now=now())


@shared_task(name="monitoring.tasks.partitions_make", soft_time_limit=60, time_limit=90)
def partitions_make_task() -> None:
    """Make partitions ahead, alert when there are few."""
    services.sample_partitions_make()
    result_partitions_make(at=now())
    engines.histogram_partitions_make(at=now())


@shared_task(name="monitoring.tasks.probes_keep", soft_time_limit=240, time_limit=280)
def probes_keep_task() -> None:
    """Sum up the hours of probes, and drop results that are older than they are kept."""
    at = now()
    hours_sum_up(at=at)
    results_forget(at=at)


@shared_task(name="monitoring.tasks.engines_keep", soft_time_limit=240, time_limit=280)
def engines_keep_task() -> None:
    """Sum up the hours of engines' histograms, and drop those that are older than they are kept."""
    at = now()
    engines.hours_sum_up(at=at)
    engines.histograms_forget(at=at)


@shared_task(name="monitoring.tasks.golive_tick", soft_time_limit=60, time_limit=90)
def golive_tick_task() -> None:
    """Give up on places of go-live tests that nobody hears of."""
    golive_tick(at=now())


@shared_task(name="monitoring.tasks.alerts_evaluate", soft_time_limit=50, time_limit=60)
def alerts_evaluate_task() -> None:
    """Judge every rule once, and put what is to be told into the outbox."""
    alerts_evaluate(at=now())


@shared_task(name="monitoring.tasks.alerts_forget", soft_time_limit=240, time_limit=280)
def alerts_forget_task() -> None:
    """Delete episodes and silences that are older than they are kept."""
    alerts_forget(at=now())


@shared_task(name="monitoring.tasks.waste_judge", soft_time_limit=240, time_limit=280)
def waste_judge_task() -> None:
    """Bring the use of every card up to the minutes that are rolled up."""
    waste_judge()
