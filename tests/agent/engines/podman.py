"""A real container engine for tests: Debian's podman behind its Docker-compatible socket, with an image of a busybox."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.waiting import eventually

PROGRAMS = ("podman", "runc")
BUSYBOX = Path("/bin/busybox")
IMAGE = "fleetdeck.test/engine:1"
APPLETS = ("sh", "sleep", "httpd", "cat", "head", "tail", "true")
# What answers like an engine: a small web server whose program answers each check with one event of a stream.
SERVE = """#!/bin/sh
echo "engine says $GREETING on $PORT"
trap 'echo stopping; exit 0' TERM
httpd -f -p "127.0.0.1:$PORT" -h /www &
wait $!
"""
ANSWER = """#!/bin/sh
printf 'Content-Type: text/event-stream\\r\\n\\r\\n'
printf 'data: {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "length"}]}\\n\\n'
"""


def why_not():
    """Return why no container can run here, empty when one can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or not BUSYBOX.exists():
        return f"not installed: {', '.join([*missing, *([] if BUSYBOX.exists() else ['busybox-static'])])}"
    return "" if os.geteuid() == 0 else "podman is only set up here for root"


class Podman:
    """One podman with stores of its own below a folder. url: of its socket."""

    def __init__(self, folder):
        self.folder = folder
        self.url = f"unix://{folder / 'podman.sock'}"
        (folder / "containers.conf").write_text(
            '[containers]\nnetns = "host"\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        )
        stores = f'driver = "vfs"\ngraphroot = "{folder / "root"}"\nrunroot = "{folder / "run"}"\n'
        (folder / "storage.conf").write_text(f"[storage]\n{stores}")
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }
        self._import_image()
        self._service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", self.url],
            env=self.environment,
            cwd=folder,  # where it leaves a mark of each kill for memory
            stdout=subprocess.DEVNULL,
            stderr=(folder / "service.log").open("w"),
        )
        eventually((folder / "podman.sock").exists)

    def run(self, *words, **options):
        """Run one podman command; returns its output."""
        done = subprocess.run(
            ["podman", *words], env=self.environment, check=True, capture_output=True, text=True, timeout=60, **options
        )
        return done.stdout

    def stop(self):
        """End the service and whatever runs."""
        self.run("rm", "--all", "--force", "--time=0")
        self._service.terminate()
        self._service.wait(20)

    def _import_image(self):
        root = self.folder / "image"
        (root / "bin").mkdir(parents=True)
        shutil.copy(BUSYBOX, root / "bin" / "busybox")
        for applet in APPLETS:
            (root / "bin" / applet).symlink_to("busybox")
        (root / "www" / "cgi-bin").mkdir(parents=True)
        for name, text in {"serve": SERVE, "www/cgi-bin/answer": ANSWER}.items():
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        archive = self.folder / "image.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root, arcname=".")
        self.run("import", "--change", "CMD /serve", str(archive), IMAGE)
