"""`kardinal cel`: evaluate an expression as gates and Graphs do, and show where it is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click

from kardinal import cel
from kardinal.cel.values import parse_timestamp
from kardinal.cli.errors import CommandError
from kardinal.cli.files import read_file, read_input
from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.cli.output import print_value

__all__ = ["evaluate"]


class _Moment(click.ParamType[datetime]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return parse_timestamp(value)
        except cel.Fault:
            self.fail("it is no time such as 2026-04-09T12:00:00Z", param, ctx)


@click.command("cel")
@click.argument("expression", metavar="EXPR")
@click.option(
    "--context",
    "context_file",
    metavar="FILE",
    help="A map in JSON or YAML, whose keys are the variables of the expression; - is standard input. "
    "Defaults to no variables.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print an error.",
)
@click.option("--now", type=_Moment(), help="The time that now() is. Defaults to the time of this machine.")
def evaluate(*, expression: str, context_file: str | None, output: str, now: datetime | None) -> None:
    """Evaluate a CEL expression on the data of a file.

    The value is printed as JSON; an optional without a value is null. Where there is no value, the error says its
    class, what is wrong and where, and never what the data holds: docs/cel.md has the classes and all functions. With
    -o json an error is printed on standard output: {"class": "missing", "message": …, "line": 1, "column": 8}, where
    the class is missing, failed, syntax or cost.
    """
    try:
        outcome = cel.compile(expression).evaluate(_variables(context_file), now=now or datetime.now(UTC))
    except cel.CompileError as error:
        found = _EvaluationError("syntax", "syntax", error.message, error.location)
    except cel.CpuTimeExceeded as error:
        found = _EvaluationError("limit", "cost", str(error), None)
    else:
        match outcome:
            case cel.Value(json=value):
                print_value(None if value is cel.OMIT else value, "json")
                return
            case cel.Missing(path=path, location=location):
                found = _EvaluationError("missing", "missing", f"`{path}` is not there", location)
            case cel.Failed(kind=kind, reason=reason, location=location):
                found = _EvaluationError(kind, "cost" if kind == "limit" else "failed", reason, location)
    if output == "json":
        print_value(found.document, "json")
        raise click.exceptions.Exit(1)
    raise _error(found.kind, found.reason, found.location, expression)


@dataclass(frozen=True, slots=True)
class _EvaluationError:
    """Why an expression has no value: `kind` for people, `of_class` for programs."""

    kind: str
    of_class: str
    reason: str
    location: cel.Location | None

    @property
    def document(self) -> dict[str, Any]:
        """Return the error for programs; line and column are null where the place is not known."""
        line, column = (None, None) if self.location is None else (self.location.line, self.location.column)
        return {"class": self.of_class, "message": self.reason, "line": line, "column": column}


def _error(kind: str, reason: str, location: cel.Location | None, expression: str) -> CommandError:
    if location is None:
        return CommandError(f"{kind}: {reason}")
    return CommandError(f"{kind}: {reason} (at {location})\n{location.shown(expression)}")


def _variables(name: str | None) -> dict[str, Any]:
    if name is None:
        return {}
    text = read_input() if name == "-" else read_file(Path(name))
    try:
        documents = list(read_manifests(text))
    except ManifestError as error:
        raise CommandError(f"{name} line {error.line}: {error}") from None
    if len(documents) != 1:
        raise CommandError(
            f"{name} has {len(documents)} maps, and the variables are the keys of one",
            remedy='Write one, such as {"bundle": {"version": "1.2.3"}}.',
        )
    return {str(key): _plain(value) for key, value in documents[0].body.items()}


def _plain(value: Any) -> Any:
    """Return a value as an API server would have it: YAML reads a time where JSON has its text."""
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case date():
            return value.isoformat().replace("+00:00", "Z")
    return value
