"""One step of `manage.py up`, with Django: database, translations, static files and the first person, each when needed."""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Final

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from fleet.agent.state import StateDirectory
from panel.core.errors import FleetdeckError
from panel.core.keyfile import read_or_create
from panel.settings.environment import DATA_DIR
from panel.up import plan
from panel.up.messages import compile_all

ADMIN: Final = "admin"
STAMP_NAME: Final = "static.stamp"


def migrate() -> None:
    """Bring the database to what the code expects."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return
    print(f"Changing the database: {len(plan)} migrations", flush=True)
    call_command("migrate", interactive=False, verbosity=0)


def static_fingerprint() -> str:
    """Return what changes when a static file, or the way in which they are stored, changes."""
    from django.contrib.staticfiles.finders import get_finders

    digest = hashlib.sha256(json.dumps(settings.STORAGES, sort_keys=True, default=str).encode())
    digest.update(str(settings.STATIC_ROOT).encode())
    for finder in get_finders():
        for path, storage in finder.list([]):
            status = Path(storage.path(path)).stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def collect_static(stamp: Path) -> None:
    """Gather the static files, when they changed since they were last gathered."""
    fingerprint = static_fingerprint()
    if stamp.exists() and stamp.read_text() == fingerprint and settings.STATIC_ROOT.is_dir():
        return
    print("Gathering the static files", flush=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(fingerprint)


def make_admin(data_dir: Path) -> None:
    """Make the first person, with FLEETDECK_ADMIN_PASSWORD or a password of our own in <data dir>/admin-password.

    Where somebody is admin already, nobody is made and no password changes.
    """
    from panel.accounts.enums import Role
    from panel.accounts.models import User
    from panel.accounts.services.users import admin_ensure

    if User.objects.filter(role=Role.ADMIN, is_active=True).exists():
        return
    given = os.environ.get("FLEETDECK_ADMIN_PASSWORD")
    password = given or read_or_create(data_dir / "admin-password", length_bytes=18)
    try:
        admin_ensure(username=ADMIN, password=password)
    except FleetdeckError as error:
        source = "FLEETDECK_ADMIN_PASSWORD" if given else str(data_dir / "admin-password")
        sys.exit(f"The user {ADMIN!r} could not be made with the password in {source}: {error.message}")
    print(f"Made the user {ADMIN!r}", flush=True)


def make_tokens(*, has_agent: bool, has_demo: bool) -> None:
    """Leave the tokens with which our own agent and the simulated fleet make themselves known."""
    from panel.up import joining

    if has_agent:
        has_identity = StateDirectory(DATA_DIR / plan.AGENT_STATE).identity_path.exists()
        told = joining.own_agent_token(DATA_DIR / plan.AGENT_RECORD, has_identity=has_identity)
        if told:
            print(told, flush=True)
    if has_demo:
        joining.demo_token(DATA_DIR / plan.DEMO_RECORD)


def main() -> None:
    """Do every step. Ends the process with a sentence when an expected one fails."""
    parser = argparse.ArgumentParser(prog="python -m panel.up.prepare", description=__doc__)
    parser.add_argument("--agent", action="store_true", help="also a join token for this machine, when it needs one")
    parser.add_argument("--demo", action="store_true", help="also an API token for the simulated fleet")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")
    django.setup()
    migrate()
    compile_all()
    collect_static(DATA_DIR / "run" / STAMP_NAME)
    make_admin(DATA_DIR)
    make_tokens(has_agent=options.agent, has_demo=options.demo)


if __name__ == "__main__":
    main()
