"""`manage.py installation`: show the installation's id, and decide about it where the database is a copy."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from fleet.services.installation import installation_keep, installation_renew, strangers_of_our_name
from panel.accounts.audit import Actor
from panel.core.installation import install_id, is_copied


class Command(BaseCommand):
    """The id that this panel's machines carry at their providers: one panel alone may use it."""

    help = "Show the installation's id; in a copied database, keep it (the other panel is no more) or take a new one."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name the two decisions."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--keep", action="store_true", help="go on under this id: the panel it comes from is gone")
        choice.add_argument(
            "--new-id",
            action="store_true",
            help="take a new id: the other panel goes on; drops orders that were not sent, pauses all accounts",
        )

    def handle(self, *_args: Any, keep: bool, new_id: bool, **_options: Any) -> None:
        """Decide, or show."""
        actor = Actor.system("installation")
        if keep:
            self.stdout.write(f"This panel goes on as {installation_keep(actor=actor).name}.")
            return
        if new_id:
            taken = installation_renew(actor=actor)
            self.stdout.write(f"This panel was {taken.before} and is {taken.name} from now on.")
            self.stdout.write(
                f"Dropped orders: {taken.orders}. Paused accounts: {taken.accounts}; switch on what is its."
            )
            return
        self.stdout.write(f"Installation id: {install_id()}")
        if is_copied():
            self.stdout.write("This database is a copy. Nothing is ordered until you decide: --keep or --new-id.")
        if count := strangers_of_our_name():
            self.stdout.write(f"{count} machines carry this id and are not known here: see Differences.")
