"""Bearer tokens: shape, randomness, comparison."""

import pytest

from panel.core import tokens


@pytest.mark.parametrize("kind", tokens.KINDS)
def test_a_token_has_256_random_bits_and_finds_its_prefix(kind):
    issued = tokens.issue(kind)
    assert issued.token.startswith(f"{kind}_{issued.prefix}_")
    assert len(issued.token.rsplit("_", 1)[-1]) <= 43 <= len(issued.token.removeprefix(f"{kind}_{issued.prefix}_"))
    assert tokens.parse(issued.token) == tokens.parse(issued.token, kind=kind) == issued.prefix
    assert tokens.matches(issued.token, issued.token_hash)
    assert not tokens.matches(issued.token[:-1] + "~", issued.token_hash)


def test_no_two_tokens_are_alike():
    assert len({tokens.issue("fdt").token for _index in range(1_000)}) == 1_000


def test_the_secret_is_in_no_repr():
    issued = tokens.issue("fdj")
    assert issued.token not in repr(issued)


def test_a_kind_that_does_not_exist_cannot_be_made():
    with pytest.raises(ValueError, match="Unknown kind"):
        tokens.issue("ghp")


@pytest.mark.parametrize(
    "text",
    ["", "fdt", "fdt_abc_x", "fdt_abcdefgh_" + "x" * 42, "xyz_abcdefgh_" + "x" * 43, "fdt_ABCDEFGH_" + "x" * 43,
     "fdt_abcdefgh_" + "x" * 43 + "\n", "fdt_abcdefgh_" + "é" * 43],
)  # fmt: skip
def test_what_is_not_shaped_like_a_token_is_none(text):
    assert tokens.parse(text) is None


def test_a_token_of_one_kind_is_not_one_of_another():
    assert tokens.parse(tokens.issue("fda").token, kind="fdt") is None
