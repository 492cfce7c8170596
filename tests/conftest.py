"""What every test stands on."""

import pytest
from hypothesis import HealthCheck, settings

from fleet.simulation.nvml import build_library
from tests import databases

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("fleetdeck", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fleetdeck")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the modules that take long: workers get whole modules, and small ones at the end let them finish together."""
    items.sort(key=lambda item: item.get_closest_marker("e2e") is None)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings):
    """Let the test database be a copy of the migrated one."""
    from django.db import connection

    connection.settings_dict["TEST"]["TEMPLATE"] = databases.template()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_blocker):
    """Let tests with real transactions empty the audit trail: its trigger against TRUNCATE sleeps in the test database.

    The tests of the trail wake it.
    """
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_auditentry DISABLE TRIGGER audit_no_truncate")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """The simulated NVML."""
    return build_library(tmp_path_factory.mktemp("simulated-nvml"))


@pytest.fixture(scope="session")
def legacy_library(tmp_path_factory):
    """The simulated NVML of a driver of the r470 branch."""
    return build_library(tmp_path_factory.mktemp("simulated-nvml"), legacy=True)
