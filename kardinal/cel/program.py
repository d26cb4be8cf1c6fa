"""A compiled expression, and the outcomes of its evaluation.

Programs are immutable and shared: the cache is keyed by the text alone, since Graphs of different Bundles repeat the
same few expressions, and bounded by their characters, since a program takes up to 300 bytes for each. An evaluation
reads plain decoded objects and never changes or copies them.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from kardinal.cel.budget import Budget, Limits
from kardinal.cel.cache import SourceCache
from kardinal.cel.errors import Absent, CompileError, FailureKind, Fault, Location
from kardinal.cel.evaluation import Evaluate, Frame, build
from kardinal.cel.grammar import is_too_long
from kardinal.cel.library import STANDARD, Library
from kardinal.cel.lowering import lower
from kardinal.cel.references import Reference, is_volatile, references
from kardinal.cel.syntax import Node
from kardinal.cel.thresholds import SEARCHED, Threshold, thresholds
from kardinal.cel.values import to_json
from kardinal.cel.weights import weight

__all__ = [
    "Failed",
    "Missing",
    "Outcome",
    "Program",
    "Value",
    "compile",
    "is_known",
    "program_of",
    "remember",
    "syntax_of",
]


@dataclass(frozen=True, slots=True)
class Value:
    """The result as decoded JSON; `OMIT` for an optional without a value."""

    json: object


@dataclass(frozen=True, slots=True)
class Missing:
    """The outcome if `path` is not in scope; the expression may succeed once it is.

    `key` is the first missing field of the path. It may be a value of the data, and is therefore not shown.
    """

    path: str
    key: object = field(default=None, compare=False, repr=False)
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The data does not fit the expression. The message names types and the place, never values."""

    kind: FailureKind
    reason: str
    location: Location | None = field(default=None, compare=False)

    @property
    def message(self) -> str:
        return self.reason if self.location is None else f"{self.reason} (at {self.location})"

    @property
    def overran(self) -> bool:
        """Return whether the evaluation exceeded its budget; on the same data it would do so again."""
        return self.kind == "limit"


Outcome = Value | Missing | Failed


@dataclass(frozen=True, slots=True)
class Program:
    source: str
    references: frozenset[Reference]
    roots: tuple[str, ...]
    """The variables that are read, in order of their names."""
    hard_roots: tuple[str, ...]
    """Those of them that are read by a reference which is not soft."""
    volatile: bool
    _reads: tuple[Reference, ...]
    _weight: int
    _limits: Limits
    _evaluate: Evaluate
    _thresholds: tuple[Threshold, ...]

    def evaluate(self, scope: Mapping[str, object], *, now: datetime, budget: Budget | None = None) -> Outcome:
        """Return the outcome. Raises CpuTimeExceeded, and no other error.

        `budget` defaults to a new one with the limits of the library.
        """
        return self._outcome(Frame(scope, now, budget or Budget(self._limits)))

    def _outcome(self, frame: Frame) -> Outcome:
        # The values of an evaluation die with it. Ten thousand of them would make the collector of garbage visit
        # everything else that lives, which takes longer than the evaluation.
        collecting = gc.isenabled()
        gc.disable()
        frame.budget.start_clock()
        try:
            return self._answer(frame)
        finally:
            frame.budget.stop_clock()
            if collecting:
                gc.enable()

    def _answer(self, frame: Frame) -> Outcome:
        try:
            frame.budget.spend(self._weight)
            return Value(to_json(self._evaluate(frame), frame.budget))
        except Absent as error:
            return Missing(error.path, error.key, self._location(error.position))
        except Fault as error:
            return Failed(error.kind, error.message, self._location(error.position))
        except OverflowError:
            return Failed("arithmetic", "the result is out of range")
        except RecursionError:
            return Failed("limit", "the data is nested too deeply")

    def _location(self, position: int | None) -> Location | None:
        return None if position is None else Location.of(self.source, position)

    def observed(self, scope: Mapping[str, object]) -> list[tuple[str, object]]:
        """Return the references that are scalars in `scope`, in source order, for an explanation of the result."""
        seen: list[tuple[str, object]] = []
        for reference in self._reads:
            value: object = scope.get(reference.root)
            for step in reference.path:
                value = value.get(step) if isinstance(value, dict) else None
            if isinstance(value, (bool, int, float, str)):
                seen.append((str(reference), value))
        return seen

    @property
    def polled(self) -> bool:
        """Return whether time may change the result at moments that `next_flip` does not find."""
        return any(threshold.sides is None and threshold.unit is None for threshold in self._thresholds)

    def next_flip(self, scope: Mapping[str, object], *, now: datetime, budget: Budget | None = None) -> datetime | None:
        """Return the earliest moment after `now` at which time alone can change the result; None when it cannot."""
        budget = budget or Budget(self._limits)
        moments = [threshold.after(scope, now, budget) for threshold in self._thresholds if threshold.unit is None]
        first = min((moment for moment in moments if moment is not None), default=None)
        unit = min((threshold.unit for threshold in self._thresholds if threshold.unit is not None), default=None)
        return first if unit is None else self._search(Frame(scope, now, budget), unit, until=first)

    def _search(self, frame: Frame, unit: timedelta, *, until: datetime | None) -> datetime:
        """Return the first multiple of `unit` at which the result differs, the last one that is tried if none does.

        No moment after `until` is returned.
        """
        result = self._outcome(frame)
        moment = frame.now - (frame.now - _EPOCH) % unit
        for _ in range(SEARCHED):
            moment += unit
            if until is not None and until <= moment:
                return until
            if self._outcome(replace(frame, now=moment)) != result:
                break
        return moment


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_PROGRAMS: SourceCache[Program | CompileError] = SourceCache(characters=64 << 10)
"""At most 17 MiB of programs, in objects that a collection of garbage visits in some 30 ms."""

_SYNTAX: SourceCache[Node] = SourceCache(characters=16 << 10)


def compile(source: str, library: Library = STANDARD) -> Program:  # noqa: A001 - read as `cel.compile`
    """Return the program of `source`; raises CompileError."""
    known = _PROGRAMS.get(source, library)
    if known is None:
        try:
            return program_of(source, lower(source, library), library)
        except CompileError as error:
            remember(source, error, library)
            raise
    if isinstance(known, CompileError):
        raise CompileError(known.position, known.message, source)
    return known


def is_known(source: str) -> bool:
    """Return whether `compile` answers at once."""
    return is_too_long(source) or _PROGRAMS.get(source, STANDARD) is not None


def remember(source: str, error: CompileError, library: Library = STANDARD) -> None:
    """Keep the error of `source`, so that it is not parsed again."""
    if not is_too_long(source):
        _PROGRAMS.put(source, CompileError(error.position, error.message, source), library)


def program_of(source: str, syntax: Node, library: Library = STANDARD) -> Program:
    """Return the program of `source`, whose syntax is known."""
    reads = tuple(dict.fromkeys(references(syntax)))
    volatile = is_volatile(syntax)
    program = Program(
        source,
        frozenset(reads),
        tuple(sorted({each.root for each in reads})),
        tuple(sorted({each.root for each in reads if not each.soft})),
        volatile,
        reads,
        weight(syntax),
        library.limits,
        build(syntax, library),
        tuple(thresholds(syntax)) if volatile else (),
    )
    _PROGRAMS.put(source, program, library)
    _SYNTAX.put(source, syntax, library)
    return program


def syntax_of(source: str) -> Node:
    """Return the syntax of `source`, at once when it was compiled just now; raises CompileError."""
    return _SYNTAX.get(source, STANDARD) or lower(source)
