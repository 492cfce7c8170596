"""How the places that probe are themselves: judged by their control targets over the last two minutes, as agents do it."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, get_args

from django.db import connection

from fleet.agent.probes.result import Outcome
from fleet.agent.probes.vantage import WINDOW_SECONDS, Seen, Verdict, judge
from monitoring.probing.models import Probe

_OUTCOMES: Final = frozenset(get_args(Outcome))
_NEWEST: Final = """
    SELECT DISTINCT ON (server_id, probe_id) server_id, probe_id, started_at, outcome, reason, (facts ->> 'total_ms')::float8
    FROM probe_result WHERE server_id = ANY(%s) AND started_at >= %s AND started_at <= %s
    ORDER BY server_id, probe_id, started_at DESC
"""


def verdicts(*, server_ids: Collection[int], at: datetime) -> dict[int, Verdict]:
    """Return for each place (0: the panel) whether it is the targets that fail or the place. Two queries.

    `unknown`: it has no control target, or none was probed within two minutes.
    """
    controls = {
        pk: target.get("slow_ms")
        for pk, target in Probe.objects.filter(target__is_control=True).values_list("pk", "target")
    }
    seen: defaultdict[int, list[Seen]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [list(server_ids), at - timedelta(seconds=WINDOW_SECONDS), at])
        for server_id, probe_id, started_at, outcome, reason, total_ms in cursor.fetchall():
            slow_ms = controls.get(probe_id)
            is_slow = slow_ms is not None and (total_ms is None or total_ms > slow_ms)
            known = reason if outcome == "vantage_down" and reason in _OUTCOMES else outcome
            seen[server_id].append(Seen(started_at.timestamp(), probe_id, known, probe_id in controls, is_slow))
    return {server_id: judge(seen[server_id], at.timestamp()) for server_id in server_ids}
