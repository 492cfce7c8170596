"""A real nginx or HAProxy with a rendered configuration, on loopback, as whoever runs the tests."""

import contextlib
import os
import shutil
import subprocess

import httpx
import pytest

from tests.agent.gateway.place import HTTP, ReplicaProcess
from tests.waiting import eventually

NGINX = """\
pid {folder}/nginx.pid;
error_log {folder}/error.log;
daemon off;
worker_processes 2;
{user}
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {rendered}
}}
"""


def program(name):
    """Where a proxy's program is; without it the test is skipped aloud."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed: the configuration rendered for it is not tried (see SYSTEM_PACKAGES)")
    return found


@contextlib.contextmanager
def running(command, port, folder):
    """Run a proxy until the block ends."""
    log = folder / "output.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}"
    try:
        eventually(
            lambda: HTTP.get(url).status_code if process.poll() is None else log.read_text(),
            lambda answer: answer == 404 or isinstance(answer, str),
            seconds=15,
            passing=httpx.TransportError,
        )
        assert process.poll() is None, log.read_text()
        yield url
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def replicas(*names):
    """Replicas with these names."""
    started = [ReplicaProcess(name) for name in names]
    try:
        yield started
    finally:
        for replica in started:
            replica.end()


def loopback(rendered, port):
    """The configuration with its address on loopback alone: a test lets nobody else in."""
    return rendered.replace(f"listen {port}", f"listen 127.0.0.1:{port}").replace(
        f"bind :{port}", f"bind 127.0.0.1:{port}"
    )


def nginx(folder, rendered, port):
    """Run nginx with what was rendered for inside http."""
    path = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    path.write_text(NGINX.format(folder=folder, rendered=loopback(rendered, port), user=user))
    return running([program("nginx"), "-p", str(folder), "-c", str(path)], port, folder)


def haproxy(folder, rendered, port):
    """Run HAProxy with a whole configuration."""
    path = folder / "haproxy.cfg"
    path.write_text(loopback(rendered, port))
    return running([program("haproxy"), "-db", "-f", str(path)], port, folder)
