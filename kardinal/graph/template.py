"""A tree with expressions in it, compiled once and rendered against a scope.

A string that is one expression takes the type of its value: 3 stays a number, a map is copied whole. Any other string
is text, and only values with an obvious text may stand in it; a list or null there is a mistake that would otherwise
end up as garbage in a name. What was rendered is never scanned again, so `${` arriving as data stays data.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal import cel
from kardinal.cel.scanner import Expression, Unscannable, scan, text_of
from kardinal.graph.errors import Problem
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.programs import NO_PROGRAMS, Programs, program_of

__all__ = ["Template", "Unrenderable", "compile_template"]

TEXT_LIMIT = 64 * 1024
"""Characters of one interpolated string."""


class Unrenderable(Exception):
    """There is no value yet (`missing` names what is waited for), or never (`message` says why)."""

    def __init__(self, *, missing: str | None = None, message: str = "") -> None:
        super().__init__(missing or message)
        self.missing = missing
        self.message = message


@dataclass(frozen=True, slots=True)
class _Constant:
    value: object


@dataclass(frozen=True, slots=True)
class _Standalone:
    path: str
    program: cel.Program


@dataclass(frozen=True, slots=True)
class _Interpolation:
    path: str
    segments: tuple[str | cel.Program, ...]


@dataclass(frozen=True, slots=True)
class _Map:
    items: tuple[tuple[str, _Part], ...]


@dataclass(frozen=True, slots=True)
class _List:
    items: tuple[_Part, ...]


_Part = _Constant | _Standalone | _Interpolation | _Map | _List


@dataclass(frozen=True, slots=True)
class Template:
    """`programs` pairs every expression with the path of the field it stands in."""

    programs: tuple[tuple[str, cel.Program], ...]
    _root: _Part

    def render(self, evaluator: Evaluator) -> object:
        """Return the tree with every expression replaced by its value; raises Unrenderable."""
        return _render(self._root, evaluator)


def compile_template(
    tree: object, *, path: str, node: str, programs: Programs = NO_PROGRAMS
) -> tuple[Template, list[Problem]]:
    """Return the template of `tree`, which with problems must not be rendered."""
    compiler = _Compiler(node, programs)
    root = compiler.part(tree, path)
    return Template(tuple(compiler.programs), root), compiler.problems


class _Compiler:
    def __init__(self, node: str, programs: Programs) -> None:
        self._node = node
        self._programs = programs
        self.programs: list[tuple[str, cel.Program]] = []
        self.problems: list[Problem] = []

    def part(self, value: object, path: str) -> _Part:
        match value:
            case str():
                return self._text(value, path) if "${" in value else _Constant(value)
            case dict():
                for key in value:
                    if "${" in key:
                        message = "an expression cannot stand in a key"
                        self.problems.append(Problem("DeclarationError", f"{path}.{key}", message, self._node))
                items = tuple((key, self.part(item, f"{path}.{key}")) for key, item in value.items())
                return _Constant(value) if all(_unchanged(part) for _, part in items) else _Map(items)
            case list():
                parts = tuple(self.part(item, f"{path}[{index}]") for index, item in enumerate(value))
                return _Constant(value) if all(map(_unchanged, parts)) else _List(parts)
            case _:
                return _Constant(value)

    def _text(self, text: str, path: str) -> _Part:
        segments: list[str | cel.Program] = []
        try:
            for segment in scan(text):
                if isinstance(segment, Expression):
                    program = program_of(segment.source, self._programs)
                    self.programs.append((path, program))
                    segments.append(program)
                else:
                    segments.append(segment)
        except (Unscannable, cel.CompileError) as error:
            self.problems.append(Problem("ExpressionError", path, str(error), self._node))
        if len(segments) == 1 and isinstance(segments[0], cel.Program):
            return _Standalone(path, segments[0])
        return _Interpolation(path, tuple(segments))


def _unchanged(part: _Part) -> bool:
    """Return whether the part renders to what it was made from, so that its parent may be shared."""
    return isinstance(part, _Constant)


def _render(part: _Part, evaluator: Evaluator) -> object:
    match part:
        case _Constant(value=value):
            return value
        case _Standalone(path=path, program=program):
            return _value(program, path, evaluator)
        case _Interpolation(path=path, segments=segments):
            return _interpolate(segments, path, evaluator)
        case _Map(items=entries):
            rendered = ((key, _render(item, evaluator)) for key, item in entries)
            return {key: value for key, value in rendered if value is not cel.OMIT}
        case _List(items=items):
            return [value for item in items if (value := _render(item, evaluator)) is not cel.OMIT]


def _value(program: cel.Program, path: str, evaluator: Evaluator) -> object:
    match evaluator.evaluate(program):
        case cel.Value(json=value):
            return value
        case cel.Missing(path=missing):
            raise Unrenderable(missing=missing)
        case cel.Failed(message=message):
            raise Unrenderable(message=f"{path}: {message}")


def _interpolate(segments: tuple[str | cel.Program, ...], path: str, evaluator: Evaluator) -> str:
    texts, size = list[str](), 0
    for segment in segments:
        texts.append(segment if isinstance(segment, str) else _text_of(_value(segment, path, evaluator), path))
        size += len(texts[-1])
        if size > TEXT_LIMIT:
            raise Unrenderable(message=f"{path}: the text is longer than {TEXT_LIMIT // 1024} KiB")
    return "".join(texts)


def _text_of(value: object, path: str) -> str:
    text = text_of(value)
    if text is None:
        raise Unrenderable(message=f"{path}: a list, a map or null cannot stand in the middle of a text")
    return text
