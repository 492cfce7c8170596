"""Accounts whose machines lie in several regions, each with a server of its own: ids that say where to ask. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from django.utils.translation import gettext as _

from fleet.providers.errors import Refused

# A region becomes part of a host name, so nothing else passes.
_REGION: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_SEPARATOR: Final = ":"
_BETWEEN: Final = re.compile(r"[,;\s，；、]+")


def word_list(text: str) -> Sequence[str]:
    """Return what a person listed by commas or blanks, each once."""
    return tuple(dict.fromkeys(word for word in _BETWEEN.split(text) if word))


def region_list(text: str) -> Sequence[str]:
    """Return the regions that a person listed, each once. Raises Refused for what is no region id, and for none at all."""
    names = word_list(text.lower())
    for name in names or ("",):
        if not _REGION.fullmatch(name):
            raise Refused(_("“%(name)s” is not the id of a region.") % {"name": name[:40]}, permanent=True)
    return names


def global_id(region: str, machine_id: str) -> str:
    """Return the id by which a machine is known here: it names the region too, so that it is found when lists change."""
    return f"{region}{_SEPARATOR}{machine_id}"


def local_id(external_id: str) -> tuple[str, str]:
    """Return (region, the provider's own id).

    Raises Refused for an id that names no region: that nobody knows it must never look as if the machine had ended.
    """
    region, _separator, machine_id = external_id.partition(_SEPARATOR)
    if not _REGION.fullmatch(region) or not machine_id:
        raise Refused(_("“%(name)s” names no machine in a region.") % {"name": external_id[:60]}, permanent=True)
    return region, machine_id
