"""llama.cpp's own server as a program: what `llama-server` is, from the wheel that tests have.

    python tests/engines/llama_server.py --model ring.gguf --alias ring --port 18000 --parallel 4

SIGTERM: what runs and waits is finished, then exit status 0; new requests are still taken meanwhile, so traffic has to have
gone elsewhere before.
"""

import argparse
import os
import signal
import sys
import threading
import time

import xllamacpp

DRAIN_SECONDS = 60.0


def parse():
    """Return the options; others of llama-server's are taken and left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", default="ring")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--ctx-size", type=int, default=8192)
    return parser.parse_known_args()[0]


def parameters(options):
    """Return them as llama.cpp takes them; the key that it asks for stands in the environment, as for llama-server."""
    made = xllamacpp.CommonParams()
    made.model.path = options.model
    made.model_alias = {options.alias}
    made.hostnames = [options.host]
    made.port = options.port
    made.n_parallel = options.parallel
    made.n_ctx = options.ctx_size
    made.n_batch = made.n_ubatch = 256
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = 1
    made.endpoint_metrics = True
    made.warmup = False
    made.use_jinja = True
    if key := os.environ.get("LLAMA_API_KEY"):
        made.api_keys = [key]
    return made


def is_busy(server):
    """Say whether a request runs or waits."""
    lines = [line.split() for line in str(server.handle_metrics()).replace("\\n", "\n").splitlines()]
    names = ("llamacpp:requests_processing", "llamacpp:requests_deferred")
    return any(float(line[1]) > 0 for line in lines if len(line) == 2 and line[0] in names)


def main():
    """Serve until SIGTERM."""
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    options = parse()
    server = xllamacpp.Server(parameters(options))
    sys.stdout.write(f"listening on {options.host}:{options.port}\n")
    sys.stdout.flush()
    while not ending.wait(0.5):
        pass
    deadline = time.monotonic() + DRAIN_SECONDS
    while is_busy(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    os._exit(0)  # to drop the server while something waits would block until that gave up


if __name__ == "__main__":
    main()
