"""The conformance tests that CEL publishes: what differs from them is written down here, with the reason.

A test is left out if it needs messages of protocol buffers, types that are checked before an evaluation, or names in a
container, none of which JSON and Kubernetes have.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from hack.celspec.assets import CELSPEC, conformance_files
from hack.kube.assets import built
from kardinal import cel
from kardinal.cel.errors import EvaluationError
from kardinal.cel.evaluation import build
from kardinal.cel.frames import Frame
from kardinal.cel.values import Type, parse_duration, parse_timestamp

if not built(CELSPEC):
    pytest.skip("needs the conformance tests of CEL: `make test-cel`, with Go >= 1.26", allow_module_level=True)

CORE = (
    *("basic", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic", "macros", "parse"),
    *("plumbing", "string", "timestamps"),
)
EXTENSIONS = ("bindings_ext", "encoders_ext", "lists_ext", "macros2", "math_ext", "optionals", "string_ext")

UNDECLARED = "an unknown function is an error of the expression, and found before any data is there"
QUALIFIED = "a variable has no dots in its name"
NANOSECONDS = "a time has microseconds"
YEARS = "the time between two years may be longer than 292 years"
DIFFERENCES = {
    "basic/functions/unbound_is_runtime_error": UNDECLARED,
    **{
        f"parse/receiver_function_names/{word}": UNDECLARED
        for word in (
            *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
            *("namespace", "return", "var", "void", "while"),
        )
    },
    **{
        f"fields/qualified_identifier_resolution/{name}": QUALIFIED
        for name in (
            *("qualified_ident", "map_field_select", "qualified_identifier_resolution_unchecked"),
            "ident_with_longest_prefix_check",
        )
    },
    "timestamps/timestamp_conversions/toString_timestamp_nanos": NANOSECONDS,
    "timestamps/timestamp_range/add_duration_nanos_over": NANOSECONDS,
    "timestamps/timestamp_range/add_duration_nanos_under": NANOSECONDS,
    "timestamps/timestamp_range/sub_time_duration_over": YEARS,
    "timestamps/timestamp_range/sub_time_duration_under": YEARS,
    "timestamps/duration_converters/get_milliseconds": "the whole duration in milliseconds, as in cel-go",
    "optionals/optionals/map_null_entry_no_such_key": "a field of null is missing, as an API server has it",
    "string_ext/format/map support (all key types)": "1 and true are one key of a Python dict",
}
"""The tests that kardinal answers in another way, with the reason."""

LEFT_OUT = re.compile(r"TestAllTypes|google\.protobuf\.(?!Timestamp|Duration)|proto2|proto3|Enum")
LIMITS = cel.Limits(steps=10_000_000, memory=1 << 28)
WELL_KNOWN = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}


class NoJson(Exception):
    """A value of the tests that JSON and Kubernetes do not have."""


@dataclass(frozen=True, slots=True)
class Conformance:
    name: str
    source: str
    scope: dict[str, object]
    expected: object
    fails: bool

    def holds(self) -> bool:
        try:
            evaluate = build(cel.lower(self.source), cel.STANDARD)
            found = evaluate(Frame(self.scope, datetime(2026, 4, 9, tzinfo=UTC), cel.Budget(LIMITS)))
        except (cel.CompileError, EvaluationError):
            return self.fails
        return not self.fails and identical(found, self.expected)


def identical(found: object, expected: object) -> bool:
    """Return whether two values have one type and are equal; not a number is itself here."""
    if type(found) is not type(expected):
        return False
    match found, expected:
        case list(), list():
            return len(found) == len(expected) and all(map(identical, found, expected))
        case dict(), dict():
            return found.keys() == expected.keys() and all(identical(found[key], expected[key]) for key in found)
    if isinstance(found, float) and isinstance(expected, float) and math.isnan(found):
        return math.isnan(expected)
    return found == expected


def value_of(message: dict[str, Any]) -> object:
    """Return the value of a cel.expr.Value in JSON."""
    [(kind, content)] = message.items()
    match kind:
        case "nullValue":
            return None
        case "boolValue" | "stringValue":
            return content
        case "int64Value":
            return int(content)
        case "uint64Value":
            return cel.Uint(content)
        case "doubleValue":
            return float(content)
        case "bytesValue":
            return base64.b64decode(content)
        case "listValue":
            return [value_of(item) for item in content.get("values", ())]
        case "mapValue":
            return {value_of(entry["key"]): value_of(entry["value"]) for entry in content.get("entries", ())}
        case "typeValue":
            return Type(WELL_KNOWN.get(content, content))
        case "objectValue":
            match WELL_KNOWN.get(content["@type"].rpartition("/")[2]):
                case "timestamp":
                    return parse_timestamp(content["value"])
                case "duration":
                    return parse_duration(content["value"])
    raise NoJson


def runnable(file: str, section: str, test: dict[str, Any]) -> Conformance | None:
    """Return a test of a file; None for one that is left out."""
    if test.get("checkOnly") or "typedResult" in test:
        return None
    if LEFT_OUT.search(test["expr"] + test.get("container", "")):
        return None
    try:
        scope = {name: value_of(bound["value"]) for name, bound in test.get("bindings", {}).items()}
        # A test without a value expects true.
        expected = value_of(test["value"]) if "value" in test else True
    except NoJson:
        return None
    return Conformance(f"{file}/{section}/{test['name']}", test["expr"], scope, expected, "evalError" in test)


@cache
def published() -> dict[str, list[Conformance]]:
    """Return the runnable tests by file."""
    return {file["name"]: list(_tests(file)) for file in conformance_files()}


def _tests(file: dict[str, Any]) -> Iterator[Conformance]:
    for section in file.get("section", ()):
        for test in section.get("test", ()):
            if found := runnable(file["name"], section["name"], test):
                yield found


@pytest.mark.parametrize("file", [*CORE, *EXTENSIONS])
def test_only_what_is_written_down_differs(file: str) -> None:
    known = {name for name in DIFFERENCES if name.startswith(f"{file}/")}
    assert {test.name for test in published()[file] if not test.holds()} == known


def test_most_of_the_core_is_as_published() -> None:
    core = [test.holds() for file in CORE for test in published()[file]]
    assert len(core) > 1_000
    assert sum(core) / len(core) >= 0.97
