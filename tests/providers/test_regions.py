"""Regions and ids that name one."""

import pytest

from fleet.providers.errors import Refused
from fleet.providers.regions import global_id, local_id, region_list, word_list


def test_what_people_list_is_taken_apart_whatever_stands_between():
    assert word_list(" ecs.gn7i, ecs.gn8v，ecs.gn7i;\nGN7、 ") == ("ecs.gn7i", "ecs.gn8v", "GN7")
    assert word_list("") == ()


def test_regions_are_listed_once_and_in_lower_case():
    assert region_list("CN-Hangzhou, cn-beijing-finance-1,cn-hangzhou,") == ("cn-hangzhou", "cn-beijing-finance-1")


@pytest.mark.parametrize("text", ["", " , ", "hangzhou", "a.b-c", "cn-hangzhou/x", "cn_hangzhou", "-cn", "cn-"])
def test_what_is_no_region_is_refused(text):
    with pytest.raises(Refused) as refused:
        region_list(text)
    assert refused.value.permanent


def test_an_id_goes_there_and_back():
    assert local_id(global_id("cn-hangzhou", "i-bp1:2")) == ("cn-hangzhou", "i-bp1:2")
