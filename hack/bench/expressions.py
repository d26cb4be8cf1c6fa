"""Measure the CPU time and memory of CEL expressions that are made to be expensive.

    python -m hack.bench.expressions         run it after a change of `kardinal/cel`

The limit of an evaluation is a number of steps. No row may take more than 20 ms or 64 MiB, and a step may take more
than 0.1 µs only in expressions with few steps.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kardinal import cel
from tests.cel.corpus import DEAR, data

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Row:
    """One expression, evaluated for the first time."""

    name: str
    seconds: float
    steps: int
    peak: int

    def __str__(self) -> str:
        each = self.seconds / max(self.steps, 1) * 1e9
        cost = f"{self.seconds * 1e3:7.2f} ms {self.steps:7} steps {each:7.1f} ns each"
        return f"{cost} {self.peak / 1e6:6.1f} MB  {self.name}"


def measure(name: str, scope: dict[str, Any]) -> Row:
    program = cel.compile(DEAR[name])
    budget = cel.Budget()
    begun = time.thread_time()
    program.evaluate(scope, now=NOW, budget=budget)
    seconds = time.thread_time() - begun
    tracemalloc.start()
    # Without a limit of CPU time, since tracing takes most of it.
    program.evaluate(scope, now=NOW, budget=cel.Budget(cel.Limits(budget.limits.steps, budget.limits.memory)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Row(name, seconds, budget.limits.steps - budget.steps, peak)


def main() -> None:
    scope = data()
    gc.collect()
    gc.freeze()
    rows = sorted((measure(name, scope) for name in DEAR), key=lambda row: row.seconds)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
