r"""JSONPath in the dialect of client-go, which templates, selectors and output paths are written in.

    metadata.name, .metadata.name, {.metadata.name}       one path, with or without braces
    spec.containers[0].image, [-1], [0:2], [*], .*, ..    indexes, slices, wildcards, descendants
    metadata.labels.app\.kubernetes\.io/name              a dot that belongs to the name
    status.conditions[?(@.type=="Ready")].status          a filter
    ['a','b']                                             a union

Where a path leads nowhere, client-go without missing keys fails, and so does this; `tests/supplychain/oracle` compares
both on generated paths, and lists the differences. Its quirks are kept, because templates rely on them unknowingly:
`['a.b']` is two fields, `[]` the first entry, and a filter for existence holds if the path in it fails after its last
field. `range` and `end` are refused.

A path has at most 1 KiB, and an evaluation takes at most `STEPS` steps: `..` on a wide object would take minutes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal, NoReturn

from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut, escaped

__all__ = ["PATH_LIMIT", "STEPS", "NoResult", "Path", "PathError", "Steps", "parse_path"]

PATH_LIMIT = 1024
"""The most characters of a path."""
STEPS = 100_000
"""The most steps of an evaluation: a step looks at one value, or returns one."""

_DICTIONARY_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)")
_NUMBER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")
_LONGEST_INTEGER = 1 << 63
_SHOWN = 120


class PathError(KardinalError):
    """A path that cannot be read or evaluated."""


class NoResult(PathError):
    """A path that leads nowhere in an object."""


class Steps:
    """A number of steps that evaluations may take."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def spend(self, steps: int) -> None:
        """Take so many steps. Raises `PathError` if there are not as many left."""
        self._left -= steps
        if self._left < 0:
            raise PathError(f"jsonpath: more than {self._limit:,} steps were needed")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str


@dataclass(frozen=True, slots=True)
class _Slice:
    """Entries of a list; None if not written. Of `[2]`, `end` is derived: the entry after `start`."""

    start: int | None
    end: int | None
    step: int | None
    derived: bool


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter; `operator` is empty if it asks whether `left` exists."""

    left: tuple[_Node, ...]
    operator: str
    right: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Union:
    branches: tuple[tuple[_Node, ...], ...]


@dataclass(frozen=True, slots=True)
class _Constant:
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A word that is neither a field nor a constant; it fails where it is evaluated."""

    word: str


_Every = Literal["*", ".."]
_Node = _Field | _Slice | _Filter | _Union | _Constant | _Unknown | _Every


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path."""

    text: str
    _nodes: tuple[_Node, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields at the beginning: of `spec.params[0].value`, `spec` and `params`."""
        return tuple(
            node.name
            for node in takewhile(lambda node: isinstance(node, _Field), self._nodes)
            if isinstance(node, _Field)
        )

    def find(self, value: object, steps: Steps | None = None) -> list[Any]:
        """Return all results; raises `NoResult` if there is none, and `PathError`.

        `steps` is the budget of several evaluations together. Defaults to none beside `STEPS`.
        """
        try:
            results = _Evaluation(steps).walk(self._nodes, [value])
        except _Failure as failure:
            if not failure.missing:
                raise PathError(f"evaluate: {failure} (in {_shown(self.text)})") from None
            results = []
        if not results:
            raise NoResult(f"jsonpath returned empty list: {_shown(self.text)}")
        return results

    def one(self, value: object, steps: Steps | None = None) -> Any:
        """Return the only result; raises `NoResult`, and `PathError` also if there are several."""
        results = self.find(value, steps)
        if len(results) > 1:
            raise PathError(f"too many results for the query: {_shown(self.text)}")
        return results[0]


@lru_cache(4096)
def parse_path(text: str) -> Path:
    """Return the path that a text says; the braces, and the dot at its beginning, may be left out. Raises PathError."""
    if not text:
        raise PathError("empty jsonpath not allowed")
    if len(text) > PATH_LIMIT:
        raise PathError(f"a jsonpath has at most {PATH_LIMIT} characters, and this one has {len(text):,}")
    whole = text
    if not whole.startswith("{."):
        whole = f"{{{whole}" if whole.startswith(".") else f"{{.{whole}"
    if not whole.endswith("}"):
        whole += "}"
    return Path(text, _Parser(whole, text).action())


def _shown(text: str) -> str:
    return cut(escaped(text), _SHOWN)


class _Parser:
    """The parser of client-go for one action, such as `{.a[0]}`; what it accepts is defined by that alone."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._position = 0

    def action(self) -> tuple[_Node, ...]:
        """Return the nodes of the text, which is one action in braces."""
        self._position = 1
        nodes: list[_Node] = []
        while not self._text.startswith("}", self._position):
            self._node(nodes)
        if self._position + 1 < len(self._text):
            self._fail(f"text after }}: {self._text[self._position + 1 :]}")
        return tuple(nodes)

    def _fail(self, problem: str) -> NoReturn:
        raise PathError(f"{_shown(self._path)} is not a jsonpath: {_shown(problem)}")

    def _peek(self) -> str:
        return self._text[self._position : self._position + 1]

    def _node(self, nodes: list[_Node]) -> None:
        if self._text.startswith("[?(", self._position):
            nodes.append(self._filter())
            return
        if self._text.startswith("..", self._position):
            if nodes and nodes[-1] == "..":
                self._fail("invalid multiple recursive descent")
            self._position += 2
            nodes.append("..")
            if _is_word(self._peek()):
                nodes.append(self._field())
            return
        character = self._peek()
        self._position += 1
        match character:
            case "" | "\r" | "\n":
                self._fail("unclosed action")
            case " " | "@" | "$":
                pass
            case "[":
                nodes.extend(self._brackets())
            case '"' | "'":
                nodes.append(self._quoted(character))
            case ".":
                nodes.append(self._field())
            case _ if character in "+-" or character.isdigit():
                self._position -= 1
                nodes.append(self._number())
            case _ if _is_word(character):
                self._position -= 1
                nodes.append(self._identifier())
            case _:
                self._fail(f"unrecognized character in action: {character!r}")

    def _field(self) -> _Node:
        start = self._position
        while (character := self._peek()) and character not in _TERMINATORS:
            self._position += 2 if character == "\\" else 1
        word = self._text[start : self._position]
        return "*" if word == "*" else _Field(word.replace("\\", ""))

    def _number(self) -> _Node:
        start = self._position
        self._position += self._peek() in ("+", "-")
        while (character := self._peek()) and (character == "." or character.isdigit()):
            self._position += 1
        word = self._text[start : self._position]
        if not _FLOAT.fullmatch(word):
            self._fail(f"cannot parse number {word}")
        is_integer = _NUMBER.fullmatch(word) and -_LONGEST_INTEGER <= int(word) < _LONGEST_INTEGER
        return _Constant(int(word) if is_integer else float(word))

    def _identifier(self) -> _Node:
        start = self._position
        while (character := self._peek()) and character not in _TERMINATORS:
            self._position += 1
        word = self._text[start : self._position]
        if word in ("range", "end"):
            self._fail(f"{word} is not supported")
        return _Constant(word == "true") if word in ("true", "false") else _Unknown(word)

    def _quoted(self, quote: str) -> _Node:
        start = self._position
        while True:
            character = self._peek()
            self._position += 1
            if character in ("", "\n"):
                self._fail("unterminated quoted string")
            # The quote that opens the string is the character before an empty one.
            if character == quote and self._text[self._position - 2] != "\\":
                break
        return _Constant(self._unquoted(self._text[start : self._position - 1], quote))

    def _unquoted(self, text: str, quote: str) -> str:
        """Resolve the escapes of Go in a quoted string."""
        result = list[str]()
        position = 0
        while position < len(text):
            character = text[position]
            position += 1
            if character != "\\":
                result.append(character)
                continue
            escape = text[position : position + 1]
            position += 1
            if escape == quote or escape in _ESCAPES:
                result.append(_ESCAPES.get(escape, escape))
            elif escape in ("x", "u", "U"):
                digits = text[position : position + {"x": 2, "u": 4, "U": 8}[escape]]
                position += len(digits)
                result.append(self._code_point(digits, escape))
            else:
                self._fail(f"unquote string: \\{escape} is no escape")
        return "".join(result)

    def _code_point(self, digits: str, escape: str) -> str:
        length = {"x": 2, "u": 4, "U": 8}[escape]
        if not re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", digits):
            self._fail(f"unquote string: \\{escape}{digits} is no escape")
        number = int(digits, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000 or (escape == "x" and number > 0x7F):
            self._fail(f"unquote string: \\{escape}{digits} is no character")
        return chr(number)

    def _brackets(self) -> tuple[_Node, ...]:
        end = self._text.find("]", self._position)
        text = self._text[self._position : end]
        if end < 0 or "\n" in text:
            self._fail("unterminated array")
        self._position = end + 1
        branches = text.split(",")
        if len(branches) > 1:
            return (_Union(tuple(self._inner(f"[{branch.strip(' ')}]") for branch in branches)),)
        if key := _DICTIONARY_KEY.fullmatch(text):
            return self._inner(f".{key[1]}")
        return (self._slice(":" if text == "*" else text),)

    def _slice(self, text: str) -> _Slice:
        found = _SLICE.fullmatch(text)
        if found is None:
            self._fail(f"invalid array index {text}")
        first, second, third = found.groups()
        start = self._index(first) if first else None
        if second:
            return _Slice(start, self._index(second[1:]), self._index(third[1:]) if third else None, derived=False)
        return _Slice(start, (start or 0) + 1, self._index(third[1:]) if third else None, derived=True)

    def _index(self, text: str) -> int | None:
        if not text:
            return None
        if text == "-" or abs(int(text)) >= _LONGEST_INTEGER:
            self._fail(f"array index {text} is not a number")
        return int(text)

    def _filter(self) -> _Filter:
        self._position += len("[?(")
        start = self._position
        quote = ""
        closed = False
        while True:
            character = self._peek()
            self._position += 1
            if character in ("", "\n"):
                self._fail("unterminated filter")
            if character in ('"', "'"):
                if not quote:
                    quote = character
                elif character == quote and self._text[self._position - 2] != "\\":
                    closed = True
            elif character == ")" and bool(quote) == closed:
                break
        text = self._text[start : self._position - 1]
        if self._peek() != "]":
            self._fail("unclosed array expect ]")
        self._position += 1
        comparison = _COMPARISON.fullmatch(text)
        if comparison is None:
            return _Filter(self._inner(text), "", ())
        return _Filter(self._inner(comparison[1]), comparison[2], self._inner(comparison[3]))

    def _inner(self, text: str) -> tuple[_Node, ...]:
        return _Parser(f"{{{text}}}", self._path).action()


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdigit()


class _Failure(Exception):
    """An evaluation that failed; `partial` are the values that a filter for existence then counts."""

    def __init__(self, message: str, partial: list[Any], *, missing: bool = False) -> None:
        super().__init__(message)
        self.partial = partial
        self.missing = missing


class _Evaluation:
    def __init__(self, shared: Steps | None) -> None:
        self._budgets = [Steps(STEPS), *([shared] if shared else [])]

    def walk(self, nodes: tuple[_Node, ...], values: list[Any]) -> list[Any]:
        for node in nodes:
            values = self._results(node, values)
        return values

    def _spend(self, steps: int) -> None:
        for budget in self._budgets:
            budget.spend(steps)

    def _results(self, node: _Node, values: list[Any]) -> list[Any]:
        self._spend(len(values) + 1)
        match node:
            case _Field(name):
                return self._fields(name, values)
            case _Slice():
                return self._entries(node, values)
            case _Filter():
                return self._filtered(node, values)
            case _Union(branches):
                return self._united(branches, values)
            case _Constant(value):
                # A text stands for itself, a number once for each value before it.
                return [value] if isinstance(value, str) else [value] * len(values)
            case _Unknown(word):
                raise _Failure(f"unrecognized identifier {word}", values)
            case "*":
                return [child for value in values for child in self._children(value)]
            case "..":
                return self._descendants(values)

    def _fields(self, name: str, values: list[Any]) -> list[Any]:
        results = [value[name] for value in values if isinstance(value, dict) and name in value]
        # A value that is null is passed over, but of nothing but nulls no field is found either.
        if values and not results:
            raise _Failure(f"{name} is not found", results, missing=True)
        return results

    def _entries(self, node: _Slice, values: list[Any]) -> list[Any]:
        results: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise _Failure(f"{_type_of(value)} is not array or slice", values)
            length = len(value)
            start = node.start or 0
            start += length if start < 0 else 0
            end = length if node.end is None else node.end
            end += length if end < 0 or (end == 0 and node.derived) else 0
            if start == end:
                return results
            if not 0 <= start < length or not 0 <= end <= length:
                raise _Failure(f"array index out of bounds: index {start}, length {length}", values, missing=True)
            if start > end:
                raise _Failure(f"starting index {start} is greater than ending index {end}", values)
            step = 1 if node.step is None else node.step
            if step <= 0:
                raise _Failure("step must be > 0", values)
            self._spend(end - start)
            results += value[start:end:step]
        return results

    def _united(self, branches: tuple[tuple[_Node, ...], ...], values: list[Any]) -> list[Any]:
        results: list[Any] = []
        for branch in branches:
            try:
                results += self.walk(branch, values)
            except _Failure as failure:
                raise _Failure(str(failure), values, missing=failure.missing) from None
        return results

    def _filtered(self, node: _Filter, values: list[Any]) -> list[Any]:
        results: list[Any] = []
        for value in values:
            if not isinstance(value, list):
                raise _Failure(f"{_type_of(value)} is not array or slice and cannot be filtered", values)
            for entry in value:
                if self._holds(node, entry, values, results):
                    results.append(entry)
        return results

    def _holds(self, node: _Filter, entry: object, values: list[Any], results: list[Any]) -> bool:
        if not node.operator:
            try:
                return bool(self.walk(node.left, [entry]))
            except _Failure as failure:
                return bool(failure.partial)
        sides = list[Any]()
        for side in (node.left, node.right):
            try:
                found = self.walk(side, [entry])
            except _Failure as failure:
                raise _Failure(str(failure), values, missing=failure.missing) from None
            if not found:
                return False
            if len(found) > 1:
                raise _Failure("can only compare one element at a time", values)
            sides += found
        try:
            return _compare(sides[0], node.operator, sides[1])
        except _Failure as failure:
            raise _Failure(str(failure), results) from None

    def _children(self, value: object) -> list[Any]:
        match value:
            case dict():
                children = list(value.values())
            case list():
                children = value
            case _:
                return []
        self._spend(len(children))
        return children

    def _descendants(self, values: list[Any]) -> list[Any]:
        """Return the values and all below them, each before what is in it; empty ones and scalars are left out."""
        results = []
        waiting = values[::-1]
        while waiting:
            value = waiting.pop()
            children = self._children(value)
            if children or (isinstance(value, str) and value):
                results.append(value)
            waiting += reversed(children)
        return results


def _type_of(value: object) -> str:
    match value:
        case dict():
            return "an object"
        case bool() | int() | float() | None:
            return json.dumps(value)
        case _:
            return "a text"


def _compare(left: object, operator: str, right: object) -> bool:
    """Compare two values as client-go does: of one type, and neither objects, lists nor null."""
    if operator not in ("<", ">", "==", "!=", "<=", ">="):
        raise _Failure(f"unrecognized filter operator {operator}", [])
    for side in (left, right):
        if not isinstance(side, str | int | float):
            raise _Failure("invalid type for comparison", [])
    if type(left) is not type(right):
        raise _Failure("incompatible types for comparison", [])
    if operator in ("==", "!="):
        return (left == right) == (operator == "==")
    if isinstance(left, bool):
        raise _Failure("invalid type for comparison", [])
    less: bool = left < right  # type: ignore[operator]  # both are of one type that has an order
    return {"<": less, "<=": less or left == right, ">": not less and left != right, ">=": not less}[operator]
