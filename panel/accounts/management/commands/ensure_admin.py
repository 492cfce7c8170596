"""`manage.py ensure_admin`: the first person of a new panel."""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from panel.accounts.services.users import admin_ensure
from panel.core.errors import FleetdeckError


class Command(BaseCommand):
    """Makes the user `admin` when the panel has no admin; otherwise changes nothing."""

    help = "Make the user `admin` with the password in FLEETDECK_ADMIN_PASSWORD, unless there is an active admin."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the name; the password comes by the environment, which other users cannot list."""
        parser.add_argument("--username", default="admin")

    def handle(self, *_args: Any, username: str, **_options: Any) -> None:
        """Make the person and say so."""
        password = os.environ.get("FLEETDECK_ADMIN_PASSWORD", "")
        try:
            user = admin_ensure(username=username, password=password)
        except FleetdeckError as error:
            raise CommandError(f"The admin could not be made: {error.message}") from error
        self.stdout.write(f"Made the admin {user.username}." if user else "There is an admin already.")
