"""Expressions in a sequence: `if`, and `${…}` in `config`.

They read the outputs of earlier steps, the Bundle and the environment, and no value that can change. A change lands by
running its edits again, perhaps much later and on another tree, and their config must be the same then. So expressions
cannot read the time, labels or the intent, and the outputs of a finished step do not change.

A string that is exactly one expression, such as `"${outputs.build.port}"`, has the type of its value. Any other string
is text, in which a value that is a list, a map or null is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from kardinal import cel
from kardinal.cel.scanner import Expression, Unscannable, scan, text_of
from kardinal.objects.errors import KardinalError
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.image import bundle_version

__all__ = [
    "EXPRESSIONS_LIMIT",
    "OUTPUTS_LIMIT",
    "ExpressionError",
    "OutputsTooLarge",
    "Path",
    "check_outputs",
    "expression_problem",
    "expressions_in",
    "holds",
    "is_template",
    "rendered",
    "scope_of",
    "shown",
]

EXPRESSIONS_LIMIT: Final = 4096
"""The largest number of characters in all different expressions of a Pipeline; 1,000 take about 13 ms to compile."""

OUTPUTS_LIMIT: Final = 8 << 10
"""The maximum size of a step's outputs in bytes of JSON; they are in the status of the PromotionStep."""

_DEPTH: Final = 16
"""The maximum depth of maps and lists in a config."""
_TEXT_LIMIT: Final = 64 << 10
"""The maximum length of a text with expressions, in characters."""
_MOMENT: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of every evaluation; expressions that read the time are refused."""

_SERVED: Final[Mapping[str, tuple[str, ...]]] = {
    "bundle": ("name", "version", "type", "artifacts", "provenance"),
    "environment": ("name", "path", "approval"),
}

Path = tuple[str | int, ...]
"""The place of a value in a config: keys of maps and positions in lists."""

Scope = Mapping[str, object]


class ExpressionError(KardinalError):
    """An expression of a sequence that is invalid or has no usable value."""


class OutputsTooLarge(KardinalError):
    """The outputs of a step exceed the limit for the status."""


def expressions_in(config: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield every expression of a config with its place. Raises `ExpressionError` if the config cannot be parsed."""
    for path, text in _texts(config, ()):
        yield from ((path, part.source) for part in _scanned(text, path) if isinstance(part, Expression))


def is_template(config: Mapping[str, Any]) -> bool:
    """Return whether a config has to be rendered before it is used."""
    return any(True for _ in _texts(config, ()))


def expression_problem(source: str, *, before: Sequence[str], all_names: Sequence[str]) -> str | None:
    """Return why an expression can never be evaluated, or None. `before` are the names of earlier outputs."""
    try:
        program = cel.compile(source)
    except cel.CompileError as error:
        return f"not valid CEL: {error}"
    if program.volatile:
        return "it reads the time, and must be the same whenever it is evaluated; write a PolicyGate about time"
    problems = (_reference_problem(each, before, all_names) for each in sorted(program.references, key=str))
    return next(filter(None, problems), None)


def holds(source: str, scope: Scope) -> bool:
    """Return the value of a condition. Raises `ExpressionError`."""
    value = _value(source, scope, "if", cel.Budget())
    if not isinstance(value, bool):
        raise ExpressionError(f"if: {source} is not a condition: it must be true or false")
    return value


def rendered(config: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """Return a config with the value of every expression in its place. Raises `ExpressionError`."""
    budget = cel.Budget()

    def replaced(text: str, path: Path) -> object:
        parts = _scanned(text, path)
        if len(parts) == 1 and isinstance(parts[0], Expression):
            return _value(parts[0].source, scope, f"config.{shown(path)}", budget)
        return _text(parts, scope, f"config.{shown(path)}", budget)

    return {key: value for key, value in _replaced(config, (), replaced).items() if value is not cel.OMIT}


def check_outputs(outputs: Mapping[str, Any]) -> None:
    """Raise `OutputsTooLarge` if outputs exceed the limit of a step or cannot be written as JSON."""
    try:
        size = len(orjson.dumps(dict(outputs)))
    except TypeError as error:
        raise OutputsTooLarge(f"its outputs are no JSON: {error}") from error
    if size > OUTPUTS_LIMIT:
        raise OutputsTooLarge(
            f"its outputs have {size:,} bytes; a step may leave {OUTPUTS_LIMIT:,}",
            remedy="Leave the name of what you made, such as a URL, and not the thing itself",
        )


def scope_of(step: PromotionStep, bundle: Bundle, outputs: Mapping[str, Any]) -> dict[str, object]:
    """Return the variables of expressions; `outputs` are those of earlier steps, by name."""
    spec = bundle.spec
    return {
        "outputs": dict(outputs),
        "bundle": {
            "name": bundle.metadata.name,
            "version": bundle_version(spec.artifacts),
            "type": spec.type,
            "artifacts": spec.artifacts.to_json(),
            "provenance": spec.provenance.to_json() if spec.provenance else {},
        },
        "environment": {
            "name": step.spec.environment,
            "path": step.spec.path,
            "approval": step.spec.approval,
        },
    }


def shown(path: Path) -> str:
    """Return a place in a config in the notation for people: `headers.x`, `values[2].path`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if len(path) > _DEPTH:
        raise ExpressionError(f"config.{shown(path[:1])}: more than {_DEPTH} levels of maps and lists")
    if isinstance(value, str) and "${" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "${" in key:
                raise ExpressionError(f"config.{shown((*path, key))}: an expression cannot stand in a key")
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _replaced(value: Any, path: Path, replace: Callable[[str, Path], object]) -> Any:
    if isinstance(value, str):
        return replace(value, path) if "${" in value else value
    if isinstance(value, Mapping):
        items = ((key, _replaced(item, (*path, key), replace)) for key, item in value.items())
        return {key: item for key, item in items if item is not cel.OMIT}
    if isinstance(value, list):
        found = (_replaced(item, (*path, index), replace) for index, item in enumerate(value))
        return [item for item in found if item is not cel.OMIT]
    return value


def _scanned(text: str, path: Path) -> list[str | Expression]:
    try:
        return scan(text)
    except Unscannable as error:
        raise ExpressionError(f"config.{shown(path)}: {error}") from error


def _text(parts: Sequence[str | Expression], scope: Scope, field: str, budget: cel.Budget) -> str:
    texts = list[str]()
    size = 0
    for part in parts:
        text = part if isinstance(part, str) else text_of(_value(part.source, scope, field, budget))
        if text is None:
            raise ExpressionError(f"{field}: a list, a map or null cannot stand in the middle of a text")
        size += len(text)
        if size > _TEXT_LIMIT:
            raise ExpressionError(f"{field}: the text is longer than {_TEXT_LIMIT >> 10} KiB")
        texts.append(text)
    return "".join(texts)


def _value(source: str, scope: Scope, field: str, budget: cel.Budget) -> object:
    try:
        outcome = cel.compile(source).evaluate(scope, now=_MOMENT, budget=budget)
    except cel.CpuTimeExceeded as error:
        raise ExpressionError(f"{field}: {error}", transient=True) from None
    except cel.CompileError as error:
        raise ExpressionError(f"{field}: not valid CEL: {error}") from None
    match outcome:
        case cel.Value(json=value):
            return value
        case cel.Missing(path=path):
            remedy = (
                "A step that was skipped or has failed leaves nothing; ask with has(…), or write `.?` and orValue(…)"
            )
            raise ExpressionError(f"{field}: {path} is not set", remedy=remedy)
        case cel.Failed(message=message):
            raise ExpressionError(f"{field}: {message}")


def _reference_problem(reference: cel.Reference, before: Sequence[str], all_names: Sequence[str]) -> str | None:
    if reference.root == "outputs":
        name = reference.path[0] if reference.path else None
        if name is None or name in before:
            return None
        if name in all_names:
            return f"outputs.{name} is not there yet: the step must stand before"
        return f"no step before leaves outputs as {name}{_hint(name, before)}"
    fields = _SERVED.get(reference.root)
    if fields is None:
        return f"there is no {reference.root}{_hint(reference.root, ('outputs', *_SERVED))}"
    if not reference.path or reference.path[0] in fields:
        return None
    known = [f"{reference.root}.{field}" for field in fields]
    return f"there is no {reference.root}.{reference.path[0]}{_hint(f'{reference.root}.{reference.path[0]}', known)}"


def _hint(name: str, known: Sequence[str]) -> str:
    if near := nearest(name, known, cutoff=0.5):
        return f"; did you mean {near}?"
    return f"; there are: {', '.join(known)}" if known else ""
