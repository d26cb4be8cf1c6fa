"""Write one value in YAML or JSON such that every parser reads the same value.

Parsers disagree about plain words: `1e5`, `0o7`, `no` and `2024-01-01` are text for some and other types for others. So
text is written plain only if all parsers take it as text, and otherwise in double quotes.
"""

from __future__ import annotations

import re

import yaml

__all__ = ["Scalar", "holds", "written"]

Scalar = str | int | float | bool | None
"""A value that a scalar of a document can get."""

_TEXT = "tag:yaml.org,2002:str"

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+-]*(?:[: ][A-Za-z0-9_./@+-]+)*")
_NUMBER_SOMEWHERE = re.compile(
    r"[-+]?(?:0x[0-9a-fA-F_]+|0o?[0-7_]+|0b[01_]+|\.(?:inf|nan)"
    r"|(?:(?:[0-9][0-9_]*+)?\.[0-9_]*+|[0-9_]*+)(?:[eE][-+]?[0-9]+)?)",
    re.IGNORECASE,
)
_ONCE_BOOLEAN = frozenset(["y", "Y", "n", "N"])
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def written(value: Scalar, *, style: str | None = None, json: bool = False) -> str:
    """Return the notation of `value`: text in its old quotes, or plain if every YAML parser reads it as text."""
    if not isinstance(value, str):
        return _number_or_word(value)
    if not json and style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if not json and style != '"' and _is_plain(value):
        return value
    return f'"{"".join(_escaped(character, json=json) for character in value)}"'


def _number_or_word(value: float | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    # YAML 1.1 reads 1e+20 as text, and 1.0e+20 as a number.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _escaped(character: str, *, json: bool) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    if ord(character) <= 0xFFFF:
        return f"\\u{ord(character):04x}"
    # JSON allows the character itself, and has no single escape for it.
    return character if json else f"\\U{ord(character):08x}"


def _is_plain(value: str) -> bool:
    # Parsers disagree about numbers: `1e5` and `0o7` are text for some and numbers for others.
    return (
        _PLAIN.fullmatch(value) is not None
        and _NUMBER_SOMEWHERE.fullmatch(value) is None
        and value not in _ONCE_BOOLEAN
        and getattr(yaml.compose(value, Loader=yaml.CSafeLoader), "tag", None) == _TEXT
    )


def holds(node: yaml.Node, value: Scalar) -> bool:
    """Return whether `node` has the value `value`."""
    if not isinstance(node, yaml.ScalarNode):
        return False
    if value is None:
        return bool(node.tag == _tag_of(None))
    wanted = value if isinstance(value, str) else written(value)
    return (node.tag, node.value) == (_tag_of(value), wanted)


def _tag_of(value: Scalar) -> str:
    if isinstance(value, str):
        return _TEXT
    return str(getattr(yaml.compose(written(value), Loader=yaml.CSafeLoader), "tag", ""))
