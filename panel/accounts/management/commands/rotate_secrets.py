"""`manage.py rotate_secrets`: encrypt all stored secrets with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from panel.accounts.audit import Actor
from panel.accounts.services.secrets import keys_in_use, secrets_rotate
from panel.core import crypto


class Command(BaseCommand):
    """Rotation in three steps, each of which may be repeated: a new key, everything under it, the old keys away."""

    help = "Encrypt all stored secrets with the first of the encryption keys; the panel may keep running."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name the two optional steps."""
        parser.add_argument("--new-key", action="store_true", help="make a new key first (keys in a file only)")
        parser.add_argument(
            "--drop-old", action="store_true", help="afterwards remove keys that encrypt nothing any more"
        )

    def handle(self, *_args: Any, new_key: bool, drop_old: bool, **_options: Any) -> None:
        """Rotate and say what was done."""
        if (new_key or drop_old) and crypto.keys_are_in_environment():
            raise CommandError("The keys come from FLEETDECK_ENCRYPTION_KEYS: change them there, the new one first.")
        try:
            if new_key:
                self.stdout.write(f"New key {crypto.add_key()} in {crypto.key_file()}. Back this file up.")
            count = secrets_rotate(actor=Actor.system("rotate_secrets"))
            self.stdout.write(f"{count} secrets encrypted again with key {crypto.keyring().current_id}.")
            if drop_old:
                gone = crypto.drop_keys_but(set(keys_in_use()))
                self.stdout.write(
                    f"Removed keys: {', '.join(gone) or 'none'}. Older backups of the database need them."
                )
        except crypto.DecryptionError as error:
            raise CommandError(str(error)) from error
