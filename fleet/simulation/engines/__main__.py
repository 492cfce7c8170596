"""`python -m fleet.simulation.engines FACTS`: one simulated engine, until SIGTERM. FACTS: JSON, see facts.py."""

import asyncio
import os
import sys
from contextlib import suppress

import msgspec
import uvicorn

from fleet.simulation.engines.answers import Answers
from fleet.simulation.engines.engine import LOOK_SECONDS, Engine
from fleet.simulation.engines.facts import KEY_VARIABLE, Facts

DRAIN_SECONDS = 60


async def serve(facts: Facts) -> None:
    """Serve until told to end, or until the simulated machine is gone."""
    engine = Engine(facts)
    application = Answers(engine, os.environ.get(KEY_VARIABLE, ""))
    ports = [facts.port, *([facts.metrics_port] if facts.metrics_port else [])]
    servers = [uvicorn.Server(_config(application, facts.host, port)) for port in ports]
    tasks = [asyncio.create_task(server.serve()) for server in servers]
    loading = asyncio.create_task(engine.load())
    try:
        while not any(task.done() for task in tasks):
            if loading.done():
                loading.result()
            if not await engine.tell():
                return
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        loading.cancel()
        for server in servers:
            server.should_exit = True
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        engine.leave()


def _config(application: Answers, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        application, host=host, port=port, log_level="warning", lifespan="off", ws="none", access_log=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )  # fmt: skip


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Facts)))
