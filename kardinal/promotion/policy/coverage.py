"""List the paths that Pipelines write to, with the gates that hold each writer.

Two Pipelines that write to one path may be held by different gates: each team has its own gates, and some gates name an
environment. So gates are listed per writer, and a path is as open as its least guarded writer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kardinal.promotion.api import Pipeline, PolicyGate
from kardinal.promotion.policy.binding import Place, places_of
from kardinal.promotion.policy.matching import GateTemplate, collect

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
    """One directory of one branch and its writers. The values are normalized for comparison."""

    repository: str
    branch: str
    path: str
    writers: tuple[Writer, ...]

    @property
    def is_bound(self) -> bool:
        """Return whether every writer is held by at least one gate."""
        return all(writer.gates for writer in self.writers)


def coverage(
    pipelines: Iterable[Pipeline], gates: Collection[PolicyGate], *, policy_namespaces: Collection[str]
) -> tuple[CoveredPath, ...]:
    """Return every path that `pipelines` write to, sorted; raises `InvalidRepositoryURL`."""
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
