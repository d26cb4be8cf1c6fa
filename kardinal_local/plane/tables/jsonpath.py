"""Compile and evaluate the JSONPath of printer columns: the subset of Kubernetes' template language that CRDs use.

    .spec.image   .metadata.labels['kardinal\\.io/shard']   .metadata.annotations.a\\.b   .spec.steps[0].name
    .spec.steps[-1].name   .spec.items[*].id   .status.conditions[?(@.type=="Ready")].status

A path is compiled once, when its CRD is created, and refused there when it cannot be understood; at run time a missing
field is no error but no value. Several values are possible; a column shows the
first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

__all__ = ["JsonPathError", "compile_path"]

Step = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"\.((?:\\.|[^.\[\]\\'\"\s(){}])+)")
_QUOTED = re.compile(r"\[\s*'((?:\\.|[^'\\])*)'\s*\]|\[\s*\"((?:\\.|[^\"\\])*)\"\s*\]")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]")
_EVERY = re.compile(r"\[\s*\*\s*\]|\.\*")
_FILTER = re.compile(
    r"\[\?\(\s*@((?:\.[A-Za-z_][\w-]*)+)\s*(==|!=)\s*(\"[^\"]*\"|'[^']*'|-?\d+(?:\.\d+)?|true|false)\s*\)\]"
)
_EXISTS = re.compile(r"\[\?\(\s*@((?:\.[A-Za-z_][\w-]*)+)\s*\)\]")


class JsonPathError(ValueError):
    """A path that this language does not have."""


def compile_path(path: str) -> Callable[[Any], Iterator[Any]]:
    """A function from a document to the values at the path, in document order."""
    if not path.startswith((".", "[", "{")):
        raise JsonPathError("a JSON path starts with a dot, like .spec.image")
    text = path[1:-1] if path.startswith("{") and path.endswith("}") else path
    steps: list[Step] = []
    position = 0
    while position < len(text):
        step, position = _parse(text, position)
        steps.append(step)

    def find(document: Any) -> Iterator[Any]:
        values: Iterator[Any] = iter((document,))
        for step in steps:
            values = _each(step, values)
        return values

    return find


def _each(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


def _parse(text: str, position: int) -> tuple[Step, int]:
    for pattern, make in _STEPS:
        match = pattern.match(text, position)
        if match:
            return make(match), match.end()
    raise JsonPathError(f"cannot read the JSON path at {text[position:]!r}")


def _field(match: re.Match[str]) -> Step:
    return _member(re.sub(r"\\(.)", r"\1", next(group for group in match.groups() if group is not None)))


def _quoted(match: re.Match[str]) -> Step:
    """A name in brackets is read like one after a dot, so dots in it divide it unless they are escaped."""
    return compile_path("." + next(group for group in match.groups() if group is not None))


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _index(match: re.Match[str]) -> Step:
    index = int(match[1])

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(match: re.Match[str]) -> Step:
    bounds = slice(*(int(bound) if bound else None for bound in match.groups()))

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[bounds]

    return step


def _every(_: re.Match[str]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()

    return step


def _filter(match: re.Match[str]) -> Step:
    find = compile_path(match[1])
    literal = match[3]
    wanted = literal[1:-1] if literal[0] in "'\"" else orjson.loads(literal)
    equal = match[2] == "=="

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = next(find(item), None)
            if found is not None and (found == wanted) is equal:
                yield item

    return step


def _exists(match: re.Match[str]) -> Step:
    find = compile_path(match[1])

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            if next(find(item), None) is not None:
                yield item

    return step


_STEPS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_EVERY, _every),
    (_FIELD, _field),
    (_QUOTED, _quoted),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_FILTER, _filter),
    (_EXISTS, _exists),
)
