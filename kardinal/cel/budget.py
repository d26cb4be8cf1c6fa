"""Count the cost of one evaluation: steps of work and bytes of new values, both counted before they are spent.

A step is a tenth of a microsecond on a machine of 2024, rounded up by the prices of `weights` and `prices`. The count
depends on the expression and its data alone, so an expression exceeds its budget on every machine or on none, and the
reason can be written to a status. The limit of CPU time is a back-stop for operations with a wrong price: it stops the
evaluation without an outcome, since a busy machine must not decide about a gate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from kardinal.cel.errors import CpuTimeExceeded, Fault

__all__ = ["STANDARD_LIMITS", "STEP", "Budget", "Limits"]

STEP: Final = 1e-7
"""The most seconds of CPU that a step may take."""

_CHECKS: Final = 8
"""The number of looks at the CPU time until the budget is used up."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one evaluation may spend.

    `memory` is the sum of all values that are created, in bytes. `cpu` is in seconds; None sets no limit.
    """

    steps: int
    memory: int
    cpu: float | None = None


STANDARD_LIMITS: Final = Limits(steps=100_000, memory=16 << 20, cpu=100_000 * STEP * 10)
"""The limits for gates and Graphs: 10 ms and 16 MiB, within the 20 ms and 64 MiB that the event loop can bear."""


class Budget:
    """The remaining steps and memory; evaluations with a common limit share one budget.

    CPU time counts from `start_clock` to `stop_clock`: what the thread does between two evaluations, such as a
    collection of garbage, is none of theirs.
    """

    __slots__ = ("_cpu", "_look", "_started", "limits", "memory", "steps")

    def __init__(self, limits: Limits = STANDARD_LIMITS) -> None:
        self.limits = limits
        self.steps = limits.steps
        self.memory = limits.memory
        self._look = self.steps - self.steps // _CHECKS
        self._cpu = 0.0
        self._started: float | None = None

    def start_clock(self) -> None:
        """Count the CPU time of this thread from here."""
        self._started = time.thread_time()

    def stop_clock(self) -> None:
        """Count no CPU time from here."""
        self._cpu = self._spent()
        self._started = None

    def spend(self, steps: int, memory: int = 0) -> None:
        """Subtract the cost of the next operation; raises Fault when the budget does not cover it."""
        self.steps -= steps
        self.memory -= memory
        if self.steps < self._look:
            if self.steps < 0:
                self.steps = 0
                raise Fault("limit", f"the expression takes more than {self.limits.steps} steps on its data")
            self._look_at_the_clock()
        if self.memory < 0:
            self.memory = 0
            raise Fault("limit", f"the values of the expression take more than {self.limits.memory >> 20} MiB")

    def _look_at_the_clock(self) -> None:
        if self.limits.cpu is not None and self._spent() > self.limits.cpu:
            raise CpuTimeExceeded
        self._look = self.steps - self.limits.steps // _CHECKS

    def _spent(self) -> float:
        return self._cpu if self._started is None else self._cpu + time.thread_time() - self._started
