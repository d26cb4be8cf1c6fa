"""Parse and match label selectors: `shard in (a, b), tier!=web, !old, size>3`.

A small recursive parser over tokens, built like the real server's, because people see what it says: which of several
mistakes is reported, and how, follows from the order in which it looks. `in` and `notin` are names where a name may
stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson

from kardinal_local.plane.naming import label_value_problems, qualified_name_problems
from kardinal_local.plane.statuses import bad_request

__all__ = ["LabelSelector", "Requirement", "parse_labels"]

_TOKENS = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|$)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", ""})
_OPERATORS = {"in": "in", "notin": "notin", "=": "in", "==": "in", "!=": "notin", ">": ">", "<": "<"}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label; `operator` is in, notin, exists, missing, > or <."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "missing":
                return value is None
        number = None if value is None else _integer(value)
        if number is None:
            return False
        (bound,) = map(int, self.values)
        return number > bound if self.operator == ">" else number < bound


@dataclass(frozen=True, slots=True)
class LabelSelector:
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@lru_cache(maxsize=256)
def parse_labels(text: str) -> LabelSelector:
    return LabelSelector(tuple(_Parser(text).requirements()))


class _Malformed(Exception):
    """What is wrong with one requirement."""


class _Parser:
    """Takes the tokens of a selector one by one."""

    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in _TOKENS.finditer(text)]
        self._position = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._next() == "":
            return found
        if not self._begins_requirement():
            raise bad_request(f"found '{self._next()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                found.append(self._requirement())
            except _Malformed as problem:
                raise bad_request(f"unable to parse requirement: {problem}") from None
            separator = self._take()
            if separator == "":
                return found
            if separator != ",":
                raise bad_request(f"found '{separator}', expected: ',' or 'end of string'")
            if not self._begins_requirement():
                raise bad_request(f"found '{self._next()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        missing = self._next() == "!"
        if missing:
            self._take()
        key = self._take()
        if key in _SYMBOLS:
            raise _Malformed(f"found '{key}', expected: identifier")
        if problem := "; ".join(qualified_name_problems(key)):
            raise _Malformed(f"<nil>: Invalid value: {_quoted(key)}: {problem}")
        if missing:
            return Requirement(key, "missing")
        if self._next() in {"", ","}:
            return Requirement(key, "exists")
        operator = self._take()
        if operator not in _OPERATORS:
            raise _Malformed(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in {"in", "notin"} else {self._exact_value()}
        _check(key, operator, sorted(values))
        return Requirement(key, _OPERATORS[operator], frozenset(values))

    def _exact_value(self) -> str:
        if self._next() in {"", ","}:
            return ""
        value = self._take()
        if value in _SYMBOLS:
            raise _Malformed(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> set[str]:
        if (opening := self._take()) != "(":
            raise _Malformed(f"found '{opening}' expected: '('")
        if self._next() in _SYMBOLS - {",", ")"}:
            raise _Malformed(f"found '{self._next()}', expected: ',', ')' or identifier")
        values: set[str] = set()
        after_value = False
        while (piece := self._take()) != ")":
            if piece == ",":
                # Nothing before a comma, or before the end, is the empty value.
                values |= set() if after_value and self._next() != ")" else {""}
                after_value = False
            elif after_value:
                raise _Malformed(f"found '{piece}', expected: ',' or ')'")
            elif piece in _SYMBOLS:
                raise _Malformed(f"found '{piece}', expected: ',', or identifier")
            else:
                values.add(piece)
                after_value = True
        return values or {""}

    def _begins_requirement(self) -> bool:
        return self._next() == "!" or self._next() not in _SYMBOLS

    def _next(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._tokens[self._position]
        self._position = min(self._position + 1, len(self._tokens) - 1)
        return token


def _check(key: str, operator: str, values: list[str]) -> None:
    problems = [
        f"values[{index}]: Invalid value: {_quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values)
        if operator in {"<", ">"} and _integer(value) is None
    ]
    problems += [
        f"values[{index}][{key}]: Invalid value: {_quoted(value)}: {problem}"
        for index, value in enumerate(values)
        if (problem := "; ".join(label_value_problems(value)))
    ]
    if problems:
        raise _Malformed(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _integer(text: str) -> int | None:
    if len(text) > 20 or not _INTEGER.fullmatch(text) or int(text) not in _INTEGERS:
        return None
    return int(text)


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
