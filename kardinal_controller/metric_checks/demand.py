"""The gates that wait for checks, and the last results of the checks, in memory.

A gate says at each evaluation which checks it reads, until nothing waits for the gate any more. It reads results from
here and never from the status of a check, which is written less often, and which other users may be able to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kardinal.objects import Key
from kardinal.promotion.metrics.queries import MetricSubject
from kardinal.promotion.metrics.readings import MetricReading, MetricReadings
from kardinal.runtime import Channel, Informer

__all__ = ["MetricDemand"]


class MetricDemand:
    """The gates that wait for the checks in `informer`, and what is known of these checks."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self.asked = Channel()
        """The checks that something has begun to wait for."""
        self.answered = Channel()
        """The gates that have something new to read."""
        self._subjects: dict[Key, MetricSubject] = {}
        self._checks: dict[Key, frozenset[Key]] = {}
        self._gates: dict[Key, set[Key]] = {}
        self._readings: dict[Key, dict[MetricSubject, MetricReading]] = {}
        self._problems: dict[Key, str] = {}

    def read(self, gate: Key, subject: MetricSubject, checks: Iterable[Key]) -> MetricReadings:
        """Return what `gate` reads of the checks, which are of one namespace, and let it wait for all of them."""
        wanted = frozenset(checks)
        if self._subjects.get(gate) != subject or self._checks.get(gate, frozenset()) != wanted:
            self.end(gate)
        if gate not in self._checks:
            self._subjects[gate] = subject
            self._checks[gate] = wanted
            for check in wanted:
                self._gates.setdefault(check, set()).add(gate)
                self.asked.push(check)
        problems = {check.name: problem for check in wanted if (problem := self._problem(check))}
        found = {
            check.name: self._readings.get(check, {}).get(subject) for check in wanted if check.name not in problems
        }
        return MetricReadings(found, problems)

    def end(self, gate: Key) -> None:
        """Note that nothing waits for `gate` any more."""
        self._subjects.pop(gate, None)
        for check in self._checks.pop(gate, frozenset()):
            self._gates[check].discard(gate)
            if not self._gates[check]:
                del self._gates[check]

    def subjects(self, check: Key) -> set[MetricSubject]:
        """Return what gates want to know of a check."""
        return {self._subjects[gate] for gate in self._gates.get(check, ())}

    def publish(self, check: Key, readings: Mapping[MetricSubject, MetricReading], *, problem: str = "") -> None:
        """Replace what is known of a check; `problem` is the reason why it cannot be queried."""
        before = self._readings.get(check, {})
        changed = {subject for subject in {*before, *readings} if before.get(subject) != readings.get(subject)}
        turned = self._problems.get(check, "") != problem or self._informer.get(*check) is None
        if readings:
            self._readings[check] = dict(readings)
        else:
            self._readings.pop(check, None)
        if problem:
            self._problems[check] = problem
        else:
            self._problems.pop(check, None)
        for gate in self._gates.get(check, ()):
            if turned or self._subjects[gate] in changed:
                self.answered.push(gate)

    def _problem(self, check: Key) -> str:
        if self._informer.get(*check) is None:
            return f"there is no MetricCheck {check}"
        return self._problems.get(check, "")
