"""Secrets at rest: encrypted, bound to a key by its id, and moved to a new key while the panel runs."""

import stat
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection

from panel.accounts.audit import Actor
from panel.accounts.models import AuditEntry, TwoFactor
from panel.accounts.services.secrets import keys_in_use
from panel.accounts.services.two_factor import two_factor_start
from panel.core import crypto
from tests.accounts.people import person

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


@pytest.fixture
def key_file(settings, tmp_path):
    settings.ENCRYPTION_KEY_FILE = tmp_path / "encryption-keys"
    settings.ENCRYPTION_KEYS = ""
    return settings.ENCRYPTION_KEY_FILE


def test_a_secret_comes_back_and_does_not_stand_in_what_is_stored():
    ring = crypto.Keyring.parse(f"a:{OLD}")
    stored = ring.encrypt("s3cret-é中")
    assert stored.startswith("fd1:a:")
    assert "s3cret" not in stored
    assert ring.decrypt(stored) == "s3cret-é中"


def test_the_first_key_encrypts_and_the_others_still_decrypt():
    stored = crypto.Keyring.parse(f"a:{OLD}").encrypt("x")
    both = crypto.Keyring.parse(f"b:{NEW},a:{OLD}")
    assert both.decrypt(stored) == "x"
    assert both.encrypt("x").startswith("fd1:b:")


@pytest.mark.parametrize(
    "text",
    ["", "a", f"a:{OLD},a:{OLD}", f"A b:{OLD}", "a:short", f"a:{OLD[:-1]}"],
    ids=["nothing", "no key", "one id twice", "space in the id", "short key", "cut key"],
)
def test_keys_that_cannot_be_used_are_refused_without_being_shown(text):
    with pytest.raises(ImproperlyConfigured) as error:
        crypto.Keyring.parse(text)
    assert OLD[:20] not in str(error.value)


def test_a_missing_key_is_named_and_a_changed_value_is_noticed():
    stored = crypto.Keyring.parse(f"a:{OLD}").encrypt("x")
    with pytest.raises(crypto.DecryptionError, match="'a' is missing"):
        crypto.Keyring.parse(f"b:{NEW}").decrypt(stored)
    with pytest.raises(crypto.DecryptionError, match="not encrypted with the key 'b'"):
        crypto.Keyring.parse(f"b:{NEW}").decrypt(stored.replace(":a:", ":b:"))
    with pytest.raises(crypto.DecryptionError, match="does not have the form"):
        crypto.Keyring.parse(f"b:{NEW}").decrypt("plain text")


def test_the_key_file_is_made_once_and_only_its_user_can_read_it(key_file):
    stored = crypto.keyring().encrypt("x")
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert crypto.keyring().decrypt(stored) == "x"
    before = crypto.keyring().current_id
    assert crypto.add_key() == crypto.keyring().current_id != before
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert crypto.keyring().decrypt(stored) == "x"


def test_keys_from_the_environment_come_before_the_file(key_file, settings):
    settings.ENCRYPTION_KEYS = f"env:{NEW}"
    assert crypto.keyring().current_id == "env"
    assert not key_file.exists()


def test_an_encrypted_field_refuses_to_be_searched():
    field = crypto.EncryptedTextField(name="secret")
    assert field.get_lookup("isnull")
    for lookup in ("exact", "contains", "in"):
        with pytest.raises(FieldError, match="cannot be searched"):
            field.get_lookup(lookup)


def stored_ids():
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM accounts_twofactor ORDER BY id")
        return [crypto.split(row[0])[0] for row in cursor.fetchall()]


def rotate(*options):
    output = StringIO()
    call_command("rotate_secrets", *options, stdout=output)
    return output.getvalue()


@pytest.fixture
def secrets(db, key_file):
    """Three secrets under the first key, and how to read them back."""
    people, system = [person(f"person{number}") for number in range(3)], Actor.system("test")
    expected = {user.username: two_factor_start(actor=system, user=user).secret for user in people}
    return expected, lambda: dict(TwoFactor.objects.values_list("user__username", "secret"))


def test_rotation_moves_every_secret_to_the_new_key_and_the_old_one_can_go(secrets, monkeypatch):
    monkeypatch.setattr("panel.accounts.services.secrets.BATCH", 2)
    expected, read = secrets
    (old,) = set(stored_ids())
    said = rotate("--new-key")
    new = crypto.keyring().current_id
    assert old != new
    assert stored_ids() == [new] * 3
    assert "3 secrets" in said
    assert f"Removed keys: {old}" in rotate("--drop-old")
    assert list(crypto.keyring().fernets) == [new]
    assert read() == expected
    entries = AuditEntry.objects.filter(action="secrets.rotate").order_by("id")
    assert [entry.after["rotated"] for entry in entries] == [3, 0]


def test_a_secret_written_while_the_old_key_is_still_there_keeps_that_key_from_being_dropped(secrets):
    (old,) = set(stored_ids())
    crypto.add_key()
    assert crypto.drop_keys_but(set(keys_in_use())) == []
    assert old in crypto.keyring().fernets


def test_rotation_says_which_key_is_missing_and_changes_nothing(secrets, settings):
    before = stored_ids()
    settings.ENCRYPTION_KEYS = f"other:{NEW}"
    with pytest.raises(CommandError, match=f"'{before[0]}' is missing"):
        rotate()
    assert stored_ids() == before
    assert not AuditEntry.objects.filter(action="secrets.rotate").exists()


def test_rotation_refuses_to_write_keys_that_the_environment_holds(settings):
    settings.ENCRYPTION_KEYS = f"env:{NEW}"
    with pytest.raises(CommandError, match="FLEETDECK_ENCRYPTION_KEYS"):
        call_command("rotate_secrets", "--new-key", stdout=StringIO())
