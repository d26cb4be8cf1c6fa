"""The functions of rules for named formats: `format.dns1123Label().validate(text)` and the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kardinal.cel import Function, Optional
from kardinal_local.plane.schemas.formats import format_of
from kardinal_local.plane.schemas.names import (
    label_1035_problems,
    label_1123_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)

__all__ = ["FORMAT_FUNCTIONS"]

_Problems = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    name: str

    def validate(self, text: str) -> Optional:
        """The problems of a text; an optional without a value when it has none."""
        problems = _FORMATS[self.name](text)
        return Optional(problems) if problems else Optional(None, present=False)


def _prefix(problems: _Problems) -> _Problems:
    """Of a name whose end will still be generated: it may end in a dash."""
    return lambda text: problems(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


def _matching(name: str, words: str) -> _Problems:
    valid = format_of(name)
    return lambda text: [] if valid is None or valid(text) else [words]


_FORMATS: Final[dict[str, _Problems]] = {
    "dns1123Label": label_1123_problems,
    "dns1123Subdomain": subdomain_problems,
    "dns1035Label": label_1035_problems,
    "qualifiedName": qualified_name_problems,
    "dns1123LabelPrefix": _prefix(label_1123_problems),
    "dns1123SubdomainPrefix": _prefix(subdomain_problems),
    "dns1035LabelPrefix": _prefix(label_1035_problems),
    "labelValue": label_value_problems,
    "uri": lambda text: _matching("uri", f'parse "{text}": invalid URI for request')(text),
    "uuid": _matching("uuid", "does not match the UUID format"),
    "byte": _matching("byte", "invalid base64"),
    "date": _matching("date", "invalid date"),
    "datetime": _matching("datetime", "invalid datetime"),
}


def _named(name: str) -> Optional:
    return Optional(NamedFormat(name)) if name in _FORMATS else Optional(None, present=False)


def _constant(name: str) -> Function:
    return Function(generic={0: lambda: NamedFormat(name)})


FORMAT_FUNCTIONS: Final[dict[str, Function]] = {
    "format.named": Function({(str,): _named}),
    "validate": Function({(NamedFormat, str): NamedFormat.validate}),
    **{f"format.{name}": _constant(name) for name in _FORMATS},
}
