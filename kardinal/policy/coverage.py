"""List what Pipelines write to, and which gates hold each of them there.

Two Pipelines that write to one path may be held by different gates: those of their own teams, and gates that name an
environment. So the gates stand with each writer, and a path is as open as the writer that the fewest gates hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kardinal.api import Pipeline, PolicyGate
from kardinal.policy.binding import Place, places_of
from kardinal.policy.matching import GateTemplate, collect

__all__ = ["CoveredPath", "Writer", "coverage"]


@dataclass(frozen=True, slots=True)
class Writer:
    """One environment of a Pipeline, and the gates that stand before it."""

    namespace: str
    pipeline: str
    environment: str
    gates: tuple[GateTemplate, ...]


@dataclass(frozen=True, slots=True)
class CoveredPath:
    """One directory of one branch, and what writes to it; all as they are compared."""

    repository: str
    branch: str
    path: str
    writers: tuple[Writer, ...]

    @property
    def is_bound(self) -> bool:
        """Return whether every writer is held by a gate."""
        return all(writer.gates for writer in self.writers)


def coverage(
    pipelines: Iterable[Pipeline], gates: Collection[PolicyGate], *, policy_namespaces: Collection[str]
) -> tuple[CoveredPath, ...]:
    """Return every path that these Pipelines write to, sorted; raises `InvalidRepositoryURL`."""
    found: dict[tuple[str, str, str], list[Writer]] = {}
    for pipeline in pipelines:
        here = collect(
            gates,
            pipeline=pipeline.metadata.name,
            namespace=pipeline.metadata.namespace,
            policy_namespaces=policy_namespaces,
        )
        for place in places_of(pipeline):
            found.setdefault(place.target, []).append(_writer(place, here))
    return tuple(CoveredPath(*target, tuple(writers)) for target, writers in sorted(found.items()))


def _writer(place: Place, gates: Iterable[GateTemplate]) -> Writer:
    holding = tuple(gate for gate in gates if not gate.permits_skip and gate.applies_to(place))
    return Writer(place.namespace, place.pipeline, place.environment, holding)
