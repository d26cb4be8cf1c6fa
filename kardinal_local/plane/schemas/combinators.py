"""Evaluate allOf, anyOf, oneOf and not: conditions on a value that neither prune nor default it.

When no branch of an anyOf or oneOf holds, the server tells that, and what is wrong in the branch that came closest:
the one in which most checks passed. The branches know the old value too, and forgive in it what an update leaves alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import NOWHERE
from kardinal_local.plane.schemas.printing import quoted

__all__ = ["Branch", "Combinators", "compile_combinators"]


class Branch(Protocol):
    """A condition: adds what is wrong with a value and counts what is right."""

    def judge(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int: ...


_Verdict = tuple[list[Cause], int]


@dataclass(frozen=True, slots=True)
class Combinators:
    """The conditions of one schema node."""

    any_of: tuple[Branch, ...]
    one_of: tuple[Branch, ...]
    all_of: tuple[Branch, ...]
    negated: Branch | None

    def judge(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int:
        passed = 1
        if self.any_of:
            passed += self._any(value, old, path, causes)
        if self.one_of:
            passed += self._one(value, old, path, causes)
        if self.all_of:
            passed += self._all(value, old, path, causes)
        if self.negated is not None and not _ask(self.negated, value, old, path)[0]:
            _refuse(path, "must not validate the schema (not)", causes)
        return passed

    def _any(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int:
        closest: _Verdict | None = None
        for branch in self.any_of:
            found, passed = verdict = _ask(branch, value, old, path)
            if not found:
                return passed
            if closest is None or passed > closest[1]:
                closest = verdict
        _refuse(path, "must validate at least one schema (anyOf)", causes)
        return _tell(closest, causes)

    def _one(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int:
        valid: list[_Verdict] = []
        closest: _Verdict | None = None
        for branch in self.one_of:
            found, passed = verdict = _ask(branch, value, old, path)
            if not found:
                valid.append(verdict)
                closest = None
            elif not valid and (closest is None or passed > closest[1]):
                closest = verdict
        if len(valid) == 1:
            return valid[0][1]
        told = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        _refuse(path, f"must validate one and only one schema (oneOf). {told}", causes)
        return _tell(closest, causes)

    def _all(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int:
        verdicts = [_ask(branch, value, old, path) for branch in self.all_of]
        failed = [verdict for verdict in verdicts if verdict[0]]
        passed = sum(_tell(verdict, causes) for verdict in verdicts)
        if failed:
            none = ". None validated" if len(failed) == len(verdicts) else ""
            _refuse(path, f"must validate all the schemas (allOf){none}", causes)
        return passed


def _ask(branch: Branch, value: Any, old: Any, path: str) -> _Verdict:
    found: list[Cause] = []
    passed = branch.judge(value, old, path, found)
    return found, passed


def _tell(verdict: _Verdict | None, causes: list[Cause]) -> int:
    if verdict is None:
        return 0
    causes += verdict[0]
    return verdict[1]


def _refuse(path: str, words: str, causes: list[Cause]) -> None:
    causes.append(Cause("FieldValueInvalid", NOWHERE, f'Invalid value: "": {quoted(path)} {words}'))


def compile_combinators(schema: JsonObject, compile_branch: Callable[[JsonObject], Branch]) -> Combinators | None:
    """The conditions of a schema; None when it has none."""
    any_of, one_of, all_of = (
        tuple(map(compile_branch, schema.get(keyword) or ())) for keyword in ("anyOf", "oneOf", "allOf")
    )
    negated = compile_branch(schema["not"]) if schema.get("not") is not None else None
    if not any_of and not one_of and not all_of and negated is None:
        return None
    return Combinators(any_of, one_of, all_of, negated)
