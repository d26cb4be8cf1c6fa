"""Writing one value into YAML or JSON so that every reader takes it for what it is.

Readers disagree on what a plain word means: `1e5`, `0o7`, `no` and `2024-01-01` are text for one and something else for
the next. Text is therefore written plain only where all of them take it for text, and in double quotes elsewhere.
"""

from __future__ import annotations

import re

import yaml

__all__ = ["Scalar", "holds", "written"]

Scalar = str | int | float | bool | None
"""A value that a scalar of a document may get."""

_TEXT = "tag:yaml.org,2002:str"

_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+-]*(?:[: ][A-Za-z0-9_./@+-]+)*")
_NUMBER_SOMEWHERE = re.compile(
    r"[-+]?(?:0x[0-9a-fA-F_]+|0o?[0-7_]+|0b[01_]+|(?:[0-9][0-9_]*)?\.?[0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|nan))",
    re.IGNORECASE,
)
_ONCE_BOOLEAN = frozenset(["y", "Y", "n", "N"])
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def written(value: Scalar, *, style: str | None = None, json: bool = False) -> str:
    """Return how `value` is written: text in its old quotes, else plain if every YAML reader takes it for text."""
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
    # YAML 1.1 takes 1e+20 for text, and 1.0e+20 for a number.
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _escaped(character: str, *, json: bool) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    if ord(character) <= 0xFFFF:
        return f"\\u{ord(character):04x}"
    # JSON takes the character as it is, and has no short escape for it.
    return character if json else f"\\U{ord(character):08x}"


def _is_plain(value: str) -> bool:
    # Readers disagree on what is a number: `1e5` and `0o7` are text for one and a number for the next.
    return (
        _PLAIN.fullmatch(value) is not None
        and _NUMBER_SOMEWHERE.fullmatch(value) is None
        and value not in _ONCE_BOOLEAN
        and getattr(yaml.compose(value, Loader=yaml.CSafeLoader), "tag", None) == _TEXT
    )


def holds(node: yaml.Node, value: Scalar) -> bool:
    """Return whether `node` reads as `value`."""
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
