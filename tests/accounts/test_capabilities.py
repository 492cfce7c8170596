"""The one table of roles."""

import itertools

import pytest

from panel.accounts.capabilities import (
    ROLE_CAPABILITIES,
    ROLE_ORDER,
    Capability,
    has_capability,
    least_role,
    lower_role,
)
from panel.accounts.enums import Role


def test_the_table_has_every_role_and_gives_every_capability_to_somebody():
    assert set(ROLE_CAPABILITIES) == set(Role) == set(ROLE_ORDER)
    assert set().union(*ROLE_CAPABILITIES.values()) == set(Capability)


def test_a_higher_role_may_everything_that_a_lower_one_may():
    for lower, higher in itertools.pairwise(ROLE_ORDER):
        assert ROLE_CAPABILITIES[lower] < ROLE_CAPABILITIES[higher]


@pytest.mark.parametrize("role", ["", "root", "ADMIN"])
def test_a_role_that_is_not_in_the_table_may_nothing(role):
    assert not any(has_capability(role, capability) for capability in Capability)


@pytest.mark.parametrize("capability", [Capability.USERS_MANAGE, Capability.AGENTS_MANAGE, Capability.TOKENS_MANAGE])
def test_only_admins_manage_people_agents_and_tokens_of_others(capability):
    assert [role for role in Role if has_capability(role, capability)] == [Role.ADMIN]
    assert least_role(capability) == Role.ADMIN


def test_viewers_change_nothing_but_their_own():
    assert {name for name in ROLE_CAPABILITIES[Role.VIEWER] if not name.endswith(".view")} == {
        Capability.PROFILE_EDIT,
        Capability.TOKENS_OWN,
    }


def test_the_lower_of_two_roles_wins():
    assert lower_role("admin", "viewer") == lower_role("viewer", "admin") == Role.VIEWER
    assert lower_role("operator", "operator") == Role.OPERATOR
