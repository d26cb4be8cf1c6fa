"""Write a value as YAML for people, as the YAML library of Go does, and its digest for programs.

Four spaces, sorted keys, lists inside of their key, and double quotes where a text would be read as something else. The
digest covers the whole text, so it tells values apart whose previews are cut at the same place.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from kardinal.bounded.loader import BoundedLoader

__all__ = ["PREVIEW_LIMIT", "Preview", "preview_of", "value_of"]

PREVIEW_LIMIT = 1024
"""The most bytes of a preview."""
_INDENT = 4
_TEXT = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Preview:
    """The beginning of a value as YAML, and the digest of the whole."""

    text: str
    digest: str

    @property
    def is_whole(self) -> bool:
        """Return whether the preview is the whole value, by its digest."""
        return self.digest == _digest(self.text.encode())


def preview_of(value: Any) -> Preview:
    """Return the preview of a JSON value of at most 64 levels."""
    encoded = "".join(f"{line}\n" for line in _document(value)).encode()
    return Preview(encoded[:PREVIEW_LIMIT].decode(errors="ignore"), _digest(encoded))


def value_of(preview: Preview) -> Any:
    """Return the value that a preview shows. Raises ValueError unless the preview is whole."""
    if len(preview.text) > PREVIEW_LIMIT or not preview.is_whole:
        raise ValueError("the preview does not show the whole value")
    try:
        value = yaml.load(preview.text, Loader=BoundedLoader)  # noqa: S506 - a loader of plain values
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if preview_of(value) != preview:
        raise ValueError("the preview is not written as previews are")
    return value


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _document(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield from _block(value, 0)
    else:
        yield from _scalar(value, _INDENT)


def _block(value: Any, indent: int) -> Iterator[str]:
    """Yield the lines of a list or object that has something in it."""
    pad = " " * indent
    if isinstance(value, dict):
        for key in sorted(value):
            name = next(_scalar(key, indent))
            inner = value[key]
            if isinstance(inner, dict | list) and inner:
                yield f"{pad}{name}:"
                yield from _block(inner, _INDENT * ((indent + _INDENT) // _INDENT))
            else:
                first, *others = _scalar(inner, _INDENT * ((indent + _INDENT) // _INDENT))
                yield f"{pad}{name}: {first}"
                yield from others
        return
    for inner in value:
        lines = _block(inner, indent + 2) if isinstance(inner, dict | list) and inner else _scalar(inner, indent + 2)
        first, *others = lines
        yield f"{pad}- {first.removeprefix(' ' * (indent + 2))}"
        yield from others


def _scalar(value: Any, indent: int) -> Iterator[str]:
    """Yield the lines of a scalar, or of an empty list or object; all but the first have their indentation."""
    if not isinstance(value, str):
        yield json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
    elif "\n" in value and value.strip() and not value.startswith((" ", "\n")) and _is_shown(value):
        body = value.rstrip("\n")
        ends = len(value) - len(body)
        yield "|" + ("-" if not ends else "+" if ends > 1 else "")
        yield from (f"{' ' * indent}{line}" if line else "" for line in body.split("\n"))
        yield from [""] * (ends - 1)
    elif _is_plain(value):
        yield value
    else:
        yield json.dumps(value, ensure_ascii=False)


def _is_shown(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@lru_cache(1024)
def _is_plain(text: str) -> bool:
    """Return whether YAML reads a text without quotes as itself."""
    dumper = yaml.SafeDumper(io.StringIO())
    is_text = dumper.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT  # type: ignore[no-untyped-call]
    return is_text and bool(dumper.analyze_scalar(text).allow_block_plain)
