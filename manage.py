#!/usr/bin/env python
"""Django's command line for Fleetdeck."""

import os
import sys


def main() -> None:
    """Run one management command."""
    if sys.argv[1:2] == ["up"]:  # before Django: it makes the database that Django wants to see
        from panel.up.command import main as up

        sys.exit(up(sys.argv[2:]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panel.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
