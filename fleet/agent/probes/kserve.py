"""Triton and others that speak KServe's inference protocol, version 2: whether a model is ready, and one inference."""

import json
from urllib.parse import quote

from fleet.agent.probes.job import Job
from fleet.agent.probes.plain_http import Body, judge
from fleet.agent.probes.result import ProbeError, plain
from fleet.agent.probes.tokens import error_text
from fleet.agent.probes.web import request_of


async def probe_ready(job: Job) -> None:
    """Ask whether the model is ready, or the server where the target names no model. Raises ProbeError: http."""
    target = job.target
    usual = f"/v2/models/{quote(target.model, safe='')}/ready" if target.model else "/v2/health/ready"
    path = usual if target.path == "/" else target.path
    body = Body()
    answer = await job.ask(request_of(target, job.vantage, method="GET", path=path), body.add)
    judge(target, answer, body.text)


async def probe_infer(job: Job) -> None:
    """Send the target's inputs and look for outputs in the answer. Raises ProbeError: http, body, empty."""
    target = job.target
    path = f"/v2/models/{quote(target.model, safe='')}/infer" if target.path == "/" else target.path
    body = Body(target.max_body_bytes)
    request = request_of(target, job.vantage, method="POST", path=path, body=job.encoded(target.body or {"inputs": []}))
    answer = await job.ask(request, body.add)
    judge(target, answer, body.text)
    if answer.headers.get("inference-header-content-length", "").isdigit():  # binary tensors lie behind the JSON
        del body.kept[int(answer.headers["inference-header-content-length"]) :]
    try:
        said = json.loads(body.text)
    except (ValueError, RecursionError):
        raise ProbeError("body", "not_json", plain(f"the answer is no JSON: {body.text[:120]}")) from None
    if not isinstance(said, dict) or said.get("error"):
        raise ProbeError("body", "error_answer", error_text(said))
    if not said.get("outputs"):
        raise ProbeError("empty", "no_outputs", "the answer has no outputs")
