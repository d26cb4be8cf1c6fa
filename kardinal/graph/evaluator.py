"""The evaluations of one pass: each node has a budget for all its expressions, and the pass a budget for all its nodes.

An expression that exceeded the budget of its node is not evaluated again, and keeps its failure, until an object that
it reads has a new resourceVersion or the text of the expression changes. When the budget of the pass is exceeded, the
remaining expressions fail in this pass only, because they are not the cause.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kardinal import cel
from kardinal.cel.syntax import DEPENDENCIES, LIFECYCLE
from kardinal.objects.applied import content_hash

__all__ = ["NODE_LIMITS", "PASS_STEPS", "Evaluator", "Overruns"]

NODE_LIMITS = cel.Limits(steps=cel.STANDARD_LIMITS.steps, memory=4 << 20, cpu=cel.STANDARD_LIMITS.cpu)
"""The limits of all expressions of one node together. No API server accepts an object of 4 MiB, the limit of memory."""

PASS_STEPS = 4_000_000
"""The most steps of one pass: 0.4 s in slices, for 40 nodes at their limit or 10,000 usual nodes."""

PASS_MEMORY = 32 << 20
"""The most bytes of all values that one pass creates."""

Overruns = cel.Quarantine[cel.Failed]
"""The expressions of one Graph that exceeded their budget, by node and text."""


class Evaluator:
    """Evaluates programs on the data of the nodes that were visited so far; each pass has its own evaluator."""

    def __init__(self, *, now: datetime, overruns: Overruns) -> None:
        self.scope: dict[str, object] = {}
        self.seconds = 0.0
        """The time of all evaluations, for the metrics."""
        self._now = now
        self._overruns = overruns
        self._node = ""
        self._budget = cel.Budget(NODE_LIMITS)
        self._steps = PASS_STEPS
        self._memory = PASS_MEMORY

    @property
    def exhausted(self) -> bool:
        """Return whether the budget of the pass is used up, so that an outcome may depend on other nodes."""
        return self._steps < 0 or self._memory < 0

    def tell(self, node: str, lifecycle: tuple[bool, bool] | None) -> None:
        """Let other nodes read whether a node is ready and updated; None for one of which this is not known."""
        ready = f"{node}.ready()"
        updated = f"{node}.updated()"
        if lifecycle is None:
            self.scope.pop(ready, None)
            self.scope.pop(updated, None)
        else:
            self.scope[ready], self.scope[updated] = lifecycle

    def begin(self, node: str, *, depends_on: Iterable[str] | None = None) -> None:
        """Start the budget of a node, or of one item of its list: `quota`, `quota[3]`.

        `depends_on`: the nodes whose data it reads as `dependencies()`, from now on.
        """
        if depends_on is not None:
            self.scope[DEPENDENCIES] = [self.scope[other] for other in depends_on if other in self.scope]
        self._steps -= NODE_LIMITS.steps - self._budget.steps
        self._memory -= NODE_LIMITS.memory - self._budget.memory
        self._node = node
        self._budget = cel.Budget(NODE_LIMITS)

    def evaluate(self, program: cel.Program) -> cel.Outcome:
        """Return the outcome of `program`; the earlier failure, if it exceeded its budget on the same data before."""
        place = (self._node, program.source)
        if place in self._overruns:
            held = self._overruns.held(place, self._version(program))
            if held is not None:
                return held
        if self.exhausted:
            return cel.Failed("limit", f"the nodes before this one took all {PASS_STEPS} steps of the Graph: split it")
        begun = time.perf_counter()
        outcome = program.evaluate(self.scope, now=self._now, budget=self._budget)
        self.seconds += time.perf_counter() - begun
        if isinstance(outcome, cel.Failed) and outcome.overran:
            self._overruns.hold(place, self._version(program), outcome)
        return outcome

    def next_flip(self, program: cel.Program) -> datetime | None:
        """Return the next time at which the outcome of `program` may change without a change of data."""
        if not program.volatile or (self._node, program.source) in self._overruns:
            return None
        return program.next_flip(self.scope, now=self._now, budget=self._budget)

    def _version(self, program: cel.Program) -> tuple[object, ...]:
        versions = [_version(self.scope.get(root)) for root in program.roots]
        facts = [self.scope.get(str(each)) for each in program.references if each.path and each.path[0] in LIFECYCLE]
        return (*versions, *facts)


def _version(data: Any) -> object:
    """Return a value that changes whenever the data does: the resourceVersion of an object, else a hash of a value."""
    match data:
        case {"metadata": {"uid": uid, "resourceVersion": version}}:
            return uid, version
        case [{"metadata": {"resourceVersion": _}}, *_]:
            return tuple(map(_version, data))
        case _:
            return content_hash(data)
