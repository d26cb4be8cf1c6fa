"""Reading back what a Graph was drawn for: its environments, their order and their gates.

A Graph outlives changes of its Pipeline, so whoever asks how far a Bundle goes must ask the Graph. It reads the fields
that the translator wrote into the templates, and for the edges the expressions of `upstreamVerified`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kardinal.api import PROMOTION_STEP
from kardinal.objects import JsonObject

__all__ = ["Legend", "read_legend"]

_UPSTREAM = re.compile(r"\$\{(\w+)\.status\.state\}")


@dataclass(frozen=True, slots=True)
class Legend:
    """Node ids by environment and by `(namespace, gate, environment)`; upstream environments by environment."""

    environments: Mapping[str, str]
    gates: Mapping[tuple[str, str, str], str]
    upstreams: Mapping[str, tuple[str, ...]]

    @property
    def ids(self) -> dict[tuple[str, ...], str]:
        """All node ids, by the keys of `names.node_ids`."""
        ids: dict[tuple[str, ...], str] = {(name,): identifier for name, identifier in self.environments.items()}
        ids.update((key, identifier) for key, identifier in self.gates.items())
        return ids

    def before(self, environment: str) -> set[str]:
        """Every environment that must be Verified before this one starts."""
        found: set[str] = set()
        waiting = list(self.upstreams.get(environment, ()))
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.upstreams.get(name, ())
        return found


def read_legend(graph: JsonObject) -> Legend:
    """What the nodes of a Graph say of themselves; nodes that are neither steps nor gates are passed over."""
    environments: dict[str, str] = {}
    gates: dict[tuple[str, str, str], str] = {}
    waits: dict[str, list[str]] = {}
    for node in graph.get("spec", {}).get("nodes", ()):
        template = node.get("template")
        if not isinstance(template, Mapping):
            continue
        spec = template.get("spec", {})
        if template.get("kind") == PROMOTION_STEP.kind and "environment" in spec:
            environments[spec["environment"]] = node["id"]
            waits[spec["environment"]] = _UPSTREAM.findall(spec.get("upstreamVerified", ""))
        elif origin := spec.get("origin"):
            gates[origin["namespace"], origin["name"], origin["environment"]] = node["id"]
    names = {identifier: environment for environment, identifier in environments.items()}
    upstreams = {
        environment: tuple(names[identifier] for identifier in identifiers if identifier in names)
        for environment, identifiers in waits.items()
    }
    return Legend(environments, gates, upstreams)
