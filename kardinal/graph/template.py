"""A JSON tree with expressions in its strings, compiled once and rendered with the data of a scope.

A string that is one expression takes the type of its value: `"${spec.replicas}"` becomes the number 3, and a map is
copied whole. Any other string, such as `"app-${spec.name}"`, is text, and its values must be strings, numbers or
booleans: a list or null in a text is refused, because it would end up as garbage in a name. Rendered text is not
scanned again, so a `${` in the data stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal import cel
from kardinal.cel.scanner import Expression, Unscannable, scan, text_of
from kardinal.graph.errors import GraphProblem
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.programs import NO_PROGRAMS, Programs, program_of
from kardinal.objects import JsonObject

__all__ = ["Template", "Unrenderable", "compile_template", "value_of"]

TEXT_LIMIT = 64 * 1024
"""The most characters of one rendered text."""


class Unrenderable(Exception):
    """A tree that cannot be rendered.

    Either data is missing so far, and `missing` names it, or an expression failed for the reason in `message`.
    """

    def __init__(self, *, missing: str | None = None, message: str = "") -> None:
        super().__init__(missing or message)
        self.missing = missing
        self.message = message


class _Dynamic:
    """A part of a tree that contains an expression. Any other part is its own value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Standalone(_Dynamic):
    path: str
    program: cel.Program


@dataclass(frozen=True, slots=True)
class _Interpolation(_Dynamic):
    path: str
    segments: tuple[str | cel.Program, ...]


@dataclass(frozen=True, slots=True)
class _Map(_Dynamic):
    items: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class _List(_Dynamic):
    items: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled tree. `programs` pairs the path of each field that has an expression with its program."""

    programs: tuple[tuple[str, cel.Program], ...]
    _root: object

    @property
    def is_one_expression(self) -> bool:
        """Return whether one expression makes the whole tree."""
        return isinstance(self._root, _Standalone)

    def render(self, evaluator: Evaluator) -> object:
        """Return the tree with every expression replaced by its value; raises Unrenderable."""
        return _render(self._root, evaluator)


def compile_template(
    tree: object, *, path: str, node: str, programs: Programs = NO_PROGRAMS
) -> tuple[Template, list[GraphProblem]]:
    """Return the template of `tree` and its problems; a template with problems must not be rendered."""
    compiler = _Compiler(node, programs)
    root = compiler.part(tree, path)
    return Template(tuple(compiler.programs), root), compiler.problems


class _Compiler:
    def __init__(self, node: str, programs: Programs) -> None:
        self._node = node
        self._programs = programs
        self.programs: list[tuple[str, cel.Program]] = []
        self.problems: list[GraphProblem] = []

    def part(self, value: object, path: str) -> object:
        if isinstance(value, str):
            return self._text(value, path) if "${" in value else value
        if isinstance(value, dict):
            return self._map(value, path)
        if isinstance(value, list):
            parts = tuple(self.part(item, f"{path}[{index}]") for index, item in enumerate(value))
            return _List(parts) if any(isinstance(part, _Dynamic) for part in parts) else value
        return value

    def _map(self, value: JsonObject, path: str) -> object:
        dynamic = False
        items = []
        for key, item in value.items():
            if "${" in key:
                message = "an expression cannot stand in a key"
                self.problems.append(GraphProblem("DeclarationError", f"{path}.{key}", message, self._node))
            part = self.part(item, f"{path}.{key}")
            dynamic = dynamic or isinstance(part, _Dynamic)
            items.append((key, part))
        return _Map(tuple(items)) if dynamic else value

    def _text(self, text: str, path: str) -> _Dynamic:
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
            self.problems.append(GraphProblem("ExpressionError", path, str(error), self._node))
        if len(segments) == 1 and isinstance(segments[0], cel.Program):
            return _Standalone(path, segments[0])
        return _Interpolation(path, tuple(segments))


def _render(part: object, evaluator: Evaluator) -> object:
    match part:
        case _Standalone(path=path, program=program):
            return value_of(program, path, evaluator)
        case _Interpolation(path=path, segments=segments):
            return _interpolate(segments, path, evaluator)
        case _Map(items=entries):
            rendered = ((key, _render(item, evaluator)) for key, item in entries)
            return {key: value for key, value in rendered if value is not cel.OMIT}
        case _List(items=items):
            return [value for item in items if (value := _render(item, evaluator)) is not cel.OMIT]
        case value:
            return value


def value_of(program: cel.Program, path: str, evaluator: Evaluator) -> object:
    """Return the value of one expression; raises Unrenderable, whose message begins with `path`."""
    match evaluator.evaluate(program):
        case cel.Value(json=value):
            return value
        case cel.Missing(path=missing):
            raise Unrenderable(missing=missing)
        case cel.Failed(message=message):
            raise Unrenderable(message=f"{path}: {message}")


def _interpolate(segments: tuple[str | cel.Program, ...], path: str, evaluator: Evaluator) -> str:
    texts = list[str]()
    size = 0
    for segment in segments:
        texts.append(segment if isinstance(segment, str) else _text_of(value_of(segment, path, evaluator), path))
        size += len(texts[-1])
        if size > TEXT_LIMIT:
            raise Unrenderable(message=f"{path}: the text is longer than {TEXT_LIMIT // 1024} KiB")
    return "".join(texts)


def _text_of(value: object, path: str) -> str:
    text = text_of(value)
    if text is None:
        raise Unrenderable(message=f"{path}: a list, a map or null cannot stand in the middle of a text")
    return text
