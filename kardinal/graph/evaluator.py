"""The evaluations of one pass: each node has one budget for all its expressions, and the pass one for all its nodes.

An expression that overran stands with its reason until an object that it reads has another resourceVersion, or the
Graph another text there. A pass that is used up fails what is left of it without that: the expressions are not at
fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kardinal import cel

__all__ = ["NODE_LIMITS", "PASS_STEPS", "Evaluator", "Overruns"]

NODE_LIMITS = cel.Limits(steps=cel.STANDARD_LIMITS.steps, memory=4 << 20, cpu=cel.STANDARD_LIMITS.cpu)
"""The cost of all expressions of one node; no API server takes an object of 4 MiB."""

PASS_STEPS = 4_000_000
"""0.4 s, in slices: 40 nodes as dear as they may be, or a thousand of the usual kind ten times over."""

PASS_MEMORY = 32 << 20
"""Bytes of all values that a pass makes."""

Overruns = cel.Quarantine[cel.Failed]
"""The expressions of one Graph that overran, by node and text."""


class Evaluator:
    """Evaluates programs on the data of the nodes so far; one for each pass."""

    def __init__(self, *, now: datetime, overruns: Overruns) -> None:
        self.scope: dict[str, object] = {}
        self._now = now
        self._overruns = overruns
        self._node = ""
        self._budget = cel.Budget(NODE_LIMITS)
        self._steps = PASS_STEPS
        self._memory = PASS_MEMORY

    def begin(self, node: str) -> None:
        """Start on the expressions of `node`."""
        self._steps -= NODE_LIMITS.steps - self._budget.steps
        self._memory -= NODE_LIMITS.memory - self._budget.memory
        self._node = node
        self._budget = cel.Budget(NODE_LIMITS)

    def evaluate(self, program: cel.Program) -> cel.Outcome:
        """Return the outcome of `program`, which is that of last time where it overran on the same data."""
        place = (self._node, program.source)
        if place in self._overruns:
            held = self._overruns.held(place, self._version(program))
            if held is not None:
                return held
        if self._steps < 0 or self._memory < 0:
            return cel.Failed("limit", f"the nodes before this one took all {PASS_STEPS} steps of the Graph: split it")
        outcome = program.evaluate(self.scope, now=self._now, budget=self._budget)
        if isinstance(outcome, cel.Failed) and outcome.overran:
            self._overruns.hold(place, self._version(program), outcome)
        return outcome

    def next_flip(self, program: cel.Program) -> datetime | None:
        """Return when time alone may next change what `program` says."""
        if not program.volatile or (self._node, program.source) in self._overruns:
            return None
        return program.next_flip(self.scope, now=self._now, budget=self._budget)

    def _version(self, program: cel.Program) -> tuple[object, ...]:
        roots = sorted({reference.root for reference in program.references})
        return tuple(_version(self.scope.get(root)) for root in roots)


def _version(data: Any) -> object:
    """Return what changes with an object, or with a list of them."""
    if isinstance(data, list):
        return tuple(map(_version, data))
    if isinstance(data, Mapping):
        metadata = data["metadata"]
        return metadata.get("uid"), metadata.get("resourceVersion")
    return None
