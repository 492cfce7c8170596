"""Databases that hold the panel's tables: copied from one that is migrated once per run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = "fleetdeck_template"
LOCK = 7_140_226  # workers of one run ask for the template at the same time


def named(name):
    """Return the address of a database of this run."""
    return re.sub(r"/[^/?]*(?=\?|$)", f"/{name}", os.environ["DATABASE_URL"], count=1)


def execute(statement):
    """Run a statement that stands outside every transaction."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(statement)


def template():
    """Return the name of the migrated database, making it when this run has none yet."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        made = "SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate"
        if connection.execute(made, [TEMPLATE]).fetchone() is None:
            connection.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}")
            connection.execute(f"CREATE DATABASE {TEMPLATE}")
            _migrate(named(TEMPLATE))
            connection.execute(f"ALTER DATABASE {TEMPLATE} IS_TEMPLATE true")
    return TEMPLATE


def _migrate(url):
    environment = {**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "panel.settings.testing"}
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def create(name):
    """Make a migrated database of this name; returns its address."""
    execute(f'CREATE DATABASE "{name}" TEMPLATE {template()}')
    return named(name)


def drop(name):
    """Remove a database and whoever is connected to it."""
    execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
