"""Write values as the files of a catalog: YAML and JSON with the bytes that kapitan and Commodore write.

Inputs (`manifest`) and filters (`filtered`) write YAML in one style: sorted keys, 2 spaces, lists indented, lines of 80
characters, `|` for text of several lines. They differ for empty values: an input writes a file without bytes for `{}`,
a filter writes `{}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

import yaml

__all__ = ["TextStyle", "filtered", "json_document", "manifest", "pruned", "yaml_text"]

TextStyle = Literal["|", ">", '"', None]
"""The style of text of several lines; None leaves it to PyYAML."""


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key. `text_style` is the style of text of several lines."""

    text_style: TextStyle = "|"

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=self.text_style if "\n" in text else None)


class _FoldedDumper(_Dumper):
    text_style = ">"


class _QuotedDumper(_Dumper):
    text_style = '"'


class _PlainDumper(_Dumper):
    text_style = None


_Dumper.add_representer(str, _Dumper.represent_text)
_DUMPERS: dict[TextStyle, type[_Dumper]] = {
    "|": _Dumper,
    ">": _FoldedDumper,
    '"': _QuotedDumper,
    None: _PlainDumper,
}


def manifest(value: object, *, text_style: TextStyle = "|") -> bytes:
    """Return the YAML of an input's value: one document, or one for each item of a list; no bytes if it is empty.

    The documents of a text are its characters, as kapitan has it. Raises `TypeError` for a number and `true`.
    """
    if not value:
        return b""
    documents: Any = [value] if isinstance(value, dict) else value
    return _dump_all(documents, _DUMPERS[text_style])


def filtered(value: object) -> bytes:
    """Return the YAML of a filter's value: one document, or one for each item of a list."""
    documents = value if isinstance(value, list) else [value]
    return _dump_all(documents, _Dumper)


def json_document(value: object) -> bytes:
    """Return the JSON of an input's value, without a final newline; no bytes if it is empty."""
    return json.dumps(value, indent=2, sort_keys=True).encode() if value else b""


def yaml_text(value: object) -> str:
    """Return YAML in PyYAML's own style, in which lists begin below their key: kapitan's `yaml_dump` writes it."""
    return str(yaml.safe_dump(value, default_flow_style=False))


def pruned(value: Any) -> Any:
    """Return a value without empty lists and objects, such as `{"a": {}, "b": 1}` as `{"b": 1}`; None if it is empty.

    One pass, as kapitan has it: an object that only becomes empty here stays, `{"a": {"b": []}}` as `{"a": {}}`.
    """
    if isinstance(value, list):
        items = [pruned(item) for item in value]
        return [item for item in items if item is not None] if value else None
    if isinstance(value, dict):
        fields = {key: pruned(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not None} if value else None
    return value


def _dump_all(documents: Iterable[object], dumper: type[_Dumper]) -> bytes:
    text = yaml.dump_all(documents, Dumper=dumper, indent=2, default_flow_style=False)
    return str(text).encode()
