"""Compare a Graph with the Graph that its Bundle would get today (pure).

A change of the Pipeline or of the gates never rewrites an existing Graph. People who mend a Pipeline expect the
opposite, so the difference is reported. Only environments that lie ahead are compared: not those in which the Bundle is
Verified, nor those in which a newer Bundle has superseded it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.policy.binding import Place, places_of
from kardinal.promotion.policy.matching import GateTemplate
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.nodes import PromotedBundle, step_spec
from kardinal.promotion.translation.recorded import expected_spec
from kardinal.promotion.translation.route import find_route, remaining
from kardinal.promotion.translation.topology import Topology, read_topology
from kardinal.tree.repository_url import InvalidRepositoryURL

__all__ = ["NO_DRIFT", "Drift", "drift_of"]

_OF_THE_BUNDLE = frozenset(["attempt", "bundleRef", "upstreamVerified", "requiredGates"])
"""Fields of a PromotionStep that do not come from the Pipeline."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The differences between a Graph and today's Pipeline and gates; falsy if there are none."""

    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Environment -> the fields of the Pipeline that have changed, for example `git.branch`."""
    gates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Environment -> the gates that were added before it or removed, as text: `gate team-a/soak is new`."""
    added: tuple[str, ...] = ()
    """Environments that were added since, and to which the Bundle could go."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.added)

    @property
    def of_pipeline(self) -> bool:
        """Return whether the Pipeline has changed for an environment that lies ahead of the Bundle."""
        return bool(self.fields)

    @property
    def changed(self) -> dict[str, tuple[str, ...]]:
        """Return all differences by environment, as text for people."""
        names = dict.fromkeys((*self.fields, *self.gates))
        return {name: (*self.fields.get(name, ()), *self.gates.get(name, ())) for name in names}


NO_DRIFT = Drift()


def drift_of(graph: JsonObject, pipeline: Pipeline, bundle: Bundle, gates: Sequence[GateTemplate]) -> Drift:
    """Return the differences between the Graph of a Bundle and the Pipeline and gates of today.

    A Pipeline that is invalid today yields no difference: its own condition reports the problem.
    """
    try:
        route = find_route(pipeline, bundle)
        places = places_of(pipeline)
    except (InvalidSpec, InvalidRepositoryURL):
        return NO_DRIFT
    topology = read_topology(graph)
    ahead = [name for name in topology.steps if not _is_past(bundle, name)]
    fields: dict[str, tuple[str, ...]] = {}
    for name in ahead:
        found = tuple(_step_differences(name, graph, topology, pipeline, bundle))
        if name in route.upstreams and set(topology.upstreams[name]) != set(route.upstreams[name]):
            found += ("dependsOn",)
        if found:
            fields[name] = found
    by_name = {place.environment: place for place in places}
    holding = {name: _gate_differences(topology, by_name[name], gates) for name in ahead if name in by_name}
    return Drift(
        fields=fields,
        gates={name: found for name, found in holding.items() if found},
        added=tuple(remaining(route.upstreams, bundle.status.environments, there=topology.steps)),
    )


def _step_differences(
    name: str, graph: JsonObject, topology: Topology, pipeline: Pipeline, bundle: Bundle
) -> Iterator[str]:
    environment = _environment(pipeline, name)
    if environment is None:
        yield "the environment is gone"
        return
    identifier = topology.steps[name].id
    node = next(node for node in graph["spec"]["nodes"] if node["id"] == identifier)
    metadata = bundle.metadata
    promotion = PromotedBundle(metadata.namespace, pipeline.metadata.name, metadata.name, bundle.spec.artifacts.kinds)
    today = step_spec(promotion, environment, pipeline.spec).to_json()
    yield from _paths(expected_spec(node, today), today)


def _paths(before: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the fields that differ; the fields inside `git` are named one by one."""
    for key in sorted({*before, *today} - _OF_THE_BUNDLE):
        old = before.get(key)
        new = today.get(key)
        if key == "git" and isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from (f"git.{part}" for part in sorted({*old, *new}) if old.get(part) != new.get(part))
        elif old != new:
            yield key


def _gate_differences(topology: Topology, place: Place, gates: Collection[GateTemplate]) -> tuple[str, ...]:
    before = {(gate.namespace, gate.name) for gate in topology.gates if gate.environment == place.environment}
    today = {(gate.namespace, gate.name) for gate in gates if not gate.permits_skip and gate.applies_to(place)}
    return (
        *(f"gate {namespace}/{name} is new" for namespace, name in sorted(today - before)),
        *(f"gate {namespace}/{name} is gone" for namespace, name in sorted(before - today)),
    )


def _environment(pipeline: Pipeline, name: str) -> Environment | None:
    return next((each for each in pipeline.spec.environments if each.name == name), None)


def _is_past(bundle: Bundle, name: str) -> bool:
    entry = bundle.status.environments.get(name)
    return entry is not None and (entry.state == "Verified" or entry.displaced_by is not None)
