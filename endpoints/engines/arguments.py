"""Tables of arguments: each has a flag, a type, bounds, a default and one sentence on what it costs and buys."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.functional import Promise
from django.utils.translation import gettext as _

from endpoints.engines.base import Value, refuse

Type = Literal["integer", "number", "boolean", "string"]
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/,-]{0,255}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One argument of an engine.

    flag: "" where the engine's function uses the value in another way. default: None leaves the choice to the engine. is_sent:
    the flag is always given, with the default where nothing is said. off_flag: the flag that says no (a boolean without one is
    left out when false).
    """

    name: str
    flag: str
    type: Type
    help: str | Promise
    default: Value | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()
    is_sent: bool = False
    off_flag: str = ""

    def schema(self) -> dict[str, Any]:
        """Return the argument in words of JSON Schema, for forms and the API."""
        facts: dict[str, Any] = {"type": self.type, "description": str(self.help), "flag": self.flag}
        pairs = (("default", self.default), ("minimum", self.minimum), ("maximum", self.maximum))
        facts |= {key: value for key, value in pairs if value is not None}
        return facts | ({"enum": list(self.choices)} if self.choices else {})


def schema(arguments: Sequence[Argument]) -> dict[str, Any]:
    """Return a table as a JSON Schema object."""
    properties = {argument.name: argument.schema() for argument in arguments}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def checked(arguments: Sequence[Argument], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values that hold: what was given, checked, and the defaults. Raises InvalidInput that names the argument."""
    table = {argument.name: argument for argument in arguments}
    for name in given:
        if name not in table:
            facts = {"name": name, "known": ", ".join(table) or "-"}
            raise refuse(
                _("There is no argument “%(name)s”; known are: %(known)s. Others go into the extra arguments.") % facts,
                name,
            )
    values = {name: _checked(argument, given[name]) for name, argument in table.items() if name in given}
    defaults = {name: argument.default for name, argument in table.items() if argument.default is not None}
    return {**defaults, **values}


def flags(arguments: Sequence[Argument], values: Mapping[str, Value], given: Collection[str]) -> list[str]:
    """Return argv parts: what was given, and what is always sent, in the order of the table."""
    parts: list[str] = []
    for argument in arguments:
        if not argument.flag or argument.name not in values or not (argument.is_sent or argument.name in given):
            continue
        value = values[argument.name]
        if isinstance(value, bool):
            word = argument.flag if value else argument.off_flag
            parts += [word] if word else []
        else:
            parts += [argument.flag, _text(value)]
    return parts


def screened(extra: Sequence[str], own_flags: Collection[str], refused: Mapping[str, str | Promise]) -> list[str]:
    """Return the extra arguments when nothing speaks against them. Raises InvalidInput.

    Refused are flags that the panel sets itself (also abbreviated or as --flag=value, since the last one would win) and those
    that an engine's module names, with its reason.
    """
    if extra and not extra[0].startswith("-"):
        raise refuse(
            _("Extra arguments begin with a flag, such as --seed; “%(given)s” is none.") % {"given": extra[0]}, "extra"
        )
    for word in extra:
        if not word or not word.isprintable():
            raise refuse(_("An extra argument is empty or holds control characters; take it out."), "extra")
        if not _is_flag(word):
            continue
        name = word.split("=", 1)[0].replace("_", "-")
        reason = refused.get(name)
        if reason is not None:
            raise refuse(_("%(flag)s cannot be given: %(reason)s") % {"flag": name, "reason": reason}, "extra")
        mine = next((flag for flag in own_flags if _means(name, flag.replace("_", "-"))), None)
        if mine is not None:
            facts = {"flag": name, "mine": mine}
            raise refuse(_("%(flag)s is set by the panel (as %(mine)s); use the field for it.") % facts, "extra")
    return list(extra)


def _is_flag(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word)


def _means(name: str, flag: str) -> bool:
    """Say whether a word is this flag or what argparse would take for it."""
    return name == flag or (name.startswith("--") and len(name) > 3 and flag.startswith(name))


def _text(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _checked(argument: Argument, value: Value) -> Value:
    """Return a value in its type. Raises InvalidInput."""
    facts = {"name": argument.name, "value": str(value)[:60]}
    if argument.type == "boolean":
        if not isinstance(value, bool):
            raise refuse(_("%(name)s must be true or false, not “%(value)s”.") % facts, argument.name)
        return value
    if argument.type == "string":
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise refuse(_("%(name)s must be one word, not “%(value)s”.") % facts, argument.name)
        if argument.choices and value not in argument.choices:
            facts["choices"] = ", ".join(argument.choices)
            raise refuse(_("%(name)s is “%(value)s”; choose one of: %(choices)s.") % facts, argument.name)
        return value
    return _number(argument, value, facts)


def _number(argument: Argument, value: Value, facts: dict[str, str]) -> int | float:
    if isinstance(value, bool | str) or (isinstance(value, float) and not math.isfinite(value)):
        raise refuse(_("%(name)s must be a number, not “%(value)s”.") % facts, argument.name)
    if argument.type == "integer" and value != int(value):
        raise refuse(_("%(name)s must be a whole number, not “%(value)s”.") % facts, argument.name)
    least, most = argument.minimum, argument.maximum
    if (least is not None and value < least) or (most is not None and value > most):
        facts |= {"least": "-∞" if least is None else f"{least:g}", "most": "∞" if most is None else f"{most:g}"}
        raise refuse(_("%(name)s is %(value)s; it must lie between %(least)s and %(most)s.") % facts, argument.name)
    return int(value) if argument.type == "integer" else float(value)
