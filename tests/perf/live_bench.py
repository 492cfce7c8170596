"""Fan-out: frames per second from one process to 100, 500 and 1,000 sockets, beside a bare `websockets` broadcast.

Rounds are closed: the next frames, one for each of eight topics, are published when every socket has the last ones, so
nothing is merged and every delivery counts. Both take turns, so that what else the machine does hits both alike; the
figure is the middle one of the turns' ratios. The panel's side is the whole way: channel layer in Valkey, hub, mailboxes,
uvicorn, with sessions and rights.
"""

import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time

from panel.up.plan import web_command
from tests.perf.harness import Row
from tests.perf.live_client import Counter, connect
from tests.services import running_services

SIZES = (100, 500, 1000)
TURNS = 5
ROUNDS = 4  # of a turn
TOPICS = 8
FRAME_BYTES = 758
GOAL = 0.7
LATENCY_GOAL_MS = 250


def free_port():
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def until_listening(port, process, seconds=40):
    """Wait until a server of ours answers on the port."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"server ended with {process.returncode}")
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"nothing listens on {port}")


async def rounds(counter, sockets, publish, count=ROUNDS, topics=TOPICS):
    """Publish `count` times a frame for each of `topics`; return deliveries per second and each delivery's delay in ms."""
    delays = []
    start = time.perf_counter()
    for number in range(count):
        counter.expect(sockets * topics)
        sent = time.perf_counter()
        await publish(number)
        await asyncio.wait_for(counter.complete.wait(), 30)
        delays += [(at - sent) * 1000 for at in counter.times]
    return sockets * topics * count / (time.perf_counter() - start), delays


def entry(number):
    """Return data whose frame has about 758 bytes, as a GPU's readings have."""
    readings = {f"metric_{index}_bytes_per_second": 1000.5 * index + number for index in range(14)}
    return {"gpus": {"1": readings}}


async def open_peer(port, size, process):
    """Connect to the limit; returns the counter of frames, the sockets, and what sends one frame a topic to all."""
    counter = Counter()
    browsers = await connect(size, port=port, path="/", headers={}, counter=counter)
    text = json.dumps({"data": entry(0)}).ljust(FRAME_BYTES)[:FRAME_BYTES]

    async def publish(_number):
        process.stdin.write((text + "\n") * TOPICS)
        process.stdin.flush()

    return counter, browsers, publish


async def open_panel(port, size, cookie):
    """Connect to the panel; returns the same. Published through the channel layer from another process (this one)."""
    from panel.core.live import apublish

    counter = Counter()
    browsers = await connect(
        size, port=port, path="/ws/live/", headers={"Cookie": f"sessionid={cookie}"}, counter=counter
    )
    counter.expect(size * TOPICS)
    topics = [f"bench.{number}" for number in range(TOPICS)]
    for browser in browsers:
        browser.send(json.dumps({"type": "subscribe", "topics": topics}))
    await asyncio.wait_for(counter.complete.wait(), 120)
    counter.smallest = FRAME_BYTES // 2

    async def publish(number, topics=topics):
        for topic in topics:
            await apublish(topic, entry(number))

    return counter, browsers, publish


async def measure(size, peer_port, process, port, cookie):
    """Measure both in turn; returns deliveries per second of each turn, (the limit's, ours), and our delays in ms."""
    peer_counter, peer_browsers, peer_publish = await open_peer(peer_port, size, process)
    counter, browsers, publish = await open_panel(port, size, cookie)
    pairs, delays = [], []
    for turn in range(TURNS + 1):  # the first one warms up
        try:
            peer, _ = await rounds(peer_counter, size, peer_publish)
            ours, _ = await rounds(counter, size, publish)
            _, of_turn = await rounds(counter, size, lambda number: publish(number, ["bench.0"]), topics=1)
        except TimeoutError:  # the machine stood still so long that the panel sent snapshots in place of frames
            print("a turn was lost", flush=True)
            continue
        if turn:
            pairs.append((peer, ours))
            delays += of_turn
    for browser in [*peer_browsers, *browsers]:
        browser.transport.close()
    return pairs, delays


def log_in():
    """Return the session key of a person, in the database that the server uses."""
    from django.test import Client

    from panel.accounts.models import User

    client = Client()
    client.force_login(User.objects.create_user("bench", password=os.urandom(12).hex()))
    return client.cookies["sessionid"].value


@contextlib.contextmanager
def server(*command, **options):
    """Run one server process; end it afterwards."""
    process = subprocess.Popen([sys.executable, *command], text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def compare(size, cookie):
    """Measure the limit and the panel at one size; return its rows."""
    peer_port, port = free_port(), free_port()
    peer = server("-m", "tests.perf.live_peer", str(peer_port), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    command = [*web_command("127.0.0.1", port)]
    command[command.index("panel.asgi:application")] = "tests.perf.live_app:application"
    with peer as peer_process, server("-m", *command) as process:
        peer_process.stdout.readline()
        asyncio.run(until_listening(port, process))
        pairs, delays = asyncio.run(measure(size, peer_port, peer_process, port, cookie))
    ratios = [ours / limit for limit, ours in pairs]
    p99 = statistics.quantiles(delays, n=100)[98]
    rows = [
        Row(
            f"live fan-out, {size} sockets",
            statistics.median(ours for _, ours in pairs),
            "deliveries/s",
            peer="websockets broadcast",
            ratio=statistics.median(ratios),
            goal=f">= {GOAL}",
            note=f"broadcast {statistics.median(limit for limit, _ in pairs):,.0f}/s; "
            f"rounds {min(ratios):.2f} to {max(ratios):.2f}",
        ),
    ]
    if size == max(SIZES):
        rows.append(
            Row(f"live delay p99, {size} sockets", p99, "ms", goal=f"< {LATENCY_GOAL_MS}", note="publish to browser")
        )
    return rows


def run(_out_dir):
    """Return the rows of the fan-out benchmark."""
    with running_services():
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        cookie = log_in()
        try:
            return [row for size in SIZES for row in compare(size, cookie)]
        finally:
            connections.close_all()
