"""allOf, anyOf, oneOf and not: conditions on a value that neither prune nor default it.

The structural dialect lets these only restrict what the schema around them has already typed, so each branch is a tree
of nodes that preserves everything and whose result is thrown away. Design: local-plane.md 2.3 (CRDs).
"""

from __future__ import annotations

from typing import Any

from kardinal.localplane.schemas.causes import Path, invalid, render
from kardinal.localplane.schemas.nodes import Judge, Node, Report

__all__ = ["all_of", "any_of", "negation", "one_of"]


def all_of(branches: tuple[Node, ...]) -> Judge:
    def judge(value: Any, path: Path, report: Report) -> None:
        for branch in branches:
            branch.process(value, path, report)

    return judge


def any_of(branches: tuple[Node, ...]) -> Judge:
    def judge(value: Any, path: Path, report: Report) -> None:
        if not any(_accepts(branch, value, path) for branch in branches):
            _refuse(value, path, report, "must validate at least one schema (anyOf)")

    return judge


def one_of(branches: tuple[Node, ...]) -> Judge:
    def judge(value: Any, path: Path, report: Report) -> None:
        count = sum(_accepts(branch, value, path) for branch in branches)
        if count != 1:
            found = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
            _refuse(value, path, report, f"must validate one and only one schema (oneOf). {found}")

    return judge


def negation(branch: Node) -> Judge:
    def judge(value: Any, path: Path, report: Report) -> None:
        if _accepts(branch, value, path):
            _refuse(value, path, report, "must not validate the schema (not)")

    return judge


def _accepts(branch: Node, value: Any, path: Path) -> bool:
    trial = Report()
    branch.process(value, path, trial)
    return not trial.causes


def _refuse(value: Any, path: Path, report: Report, words: str) -> None:
    report.add(path, invalid(path, value, f'"{render(path)}" {words}'))
