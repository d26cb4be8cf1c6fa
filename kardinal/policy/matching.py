"""Match gate templates with Pipelines and environments.

The namespace decides the scope: what lives in a policy namespace is org, whatever its labels say, and no Pipeline can
take it away or pass for it. A gate that carries the Bundle label is an instance; reading it back as a template would
multiply the gates with every Bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kardinal.api import PolicyGate
from kardinal.api.names import (
    LABEL_APPLIES_TO,
    LABEL_BUNDLE,
    LABEL_PIPELINE,
    LABEL_TYPE,
    TYPE_FREEZE,
    TYPE_HOLD,
    TYPE_SKIP_PERMISSION,
    gate_name,
    label_value,
)
from kardinal.api.policy_gate import GateScope, PolicyGateSpec
from kardinal.objects.naming import short_hash
from kardinal.policy.binding import Binding, Place

__all__ = [
    "GateTemplate",
    "collect",
    "instance_names",
    "is_freeze",
    "is_instance",
    "is_template",
    "named_environments",
]


_ASKED_BY_AGENTS = frozenset([TYPE_FREEZE, TYPE_HOLD])
"""Types of gates that hold by being there, whatever a Graph says."""


def is_instance(labels: Mapping[str, str]) -> bool:
    """Return whether a gate with these labels belongs to one Bundle."""
    return LABEL_BUNDLE in labels


def is_template(labels: Mapping[str, str]) -> bool:
    """Return whether Bundles get instances of a gate with these labels, or may ask it for permission to skip."""
    return not is_instance(labels) and labels.get(LABEL_TYPE) not in _ASKED_BY_AGENTS


def is_freeze(labels: Mapping[str, str]) -> bool:
    """Return whether a gate with these labels pauses a Pipeline, if it has the name of its freeze."""
    return not is_instance(labels) and labels.get(LABEL_TYPE) == TYPE_FREEZE


@dataclass(frozen=True, slots=True)
class GateTemplate:
    """A gate as it applies to one Pipeline; `environments` is empty where no environment is named."""

    namespace: str
    name: str
    scope: GateScope
    permits_skip: bool
    environments: frozenset[str]
    binding: Binding
    spec: PolicyGateSpec

    def applies_to(self, place: Place) -> bool:
        """Return whether the gate names the environment, if it names any, and its `match` binds the facts of it."""
        named = not self.environments or place.environment in self.environments
        return named and self.binding.holds(place)


def collect(
    gates: Iterable[PolicyGate], *, pipeline: str, namespace: str, policy_namespaces: Collection[str]
) -> tuple[GateTemplate, ...]:
    """Return the templates that hold for one Pipeline, org gates first, each scope by name."""
    found = []
    for gate in gates:
        org = gate.metadata.namespace in policy_namespaces
        if not is_template(gate.metadata.labels) or not (
            org or _limited_to(gate, pipeline=pipeline, namespace=namespace)
        ):
            continue
        found.append(
            GateTemplate(
                namespace=gate.metadata.namespace,
                name=gate.metadata.name,
                scope="org" if org else "team",
                permits_skip=gate.metadata.labels.get(LABEL_TYPE) == TYPE_SKIP_PERMISSION,
                environments=named_environments(gate),
                binding=Binding.of(gate.spec.match),
                spec=gate.spec,
            )
        )
    return tuple(sorted(found, key=lambda gate: (gate.scope, gate.namespace, gate.name)))


def instance_names(bundle: str, wanted: Collection[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Return the names of the instances for `(namespace, gate, environment)`.

    Two namespaces may hold a gate of one name, and `a` + `b-c` reads like `a-b` + `c`: names that would fall together
    get a hash of what they stand for, or a team's gate could take the place of an org gate.
    """
    plain = {key: gate_name(bundle, key[2], key[1]) for key in wanted}
    taken = list(plain.values())
    return {
        key: name if taken.count(name) == 1 else gate_name(bundle, key[2], f"{key[1]}-{short_hash('/'.join(key))}")
        for key, name in plain.items()
    }


def _limited_to(gate: PolicyGate, *, pipeline: str, namespace: str) -> bool:
    limit = gate.metadata.labels.get(LABEL_PIPELINE)
    return gate.metadata.namespace == namespace and limit in (None, label_value(pipeline))


def named_environments(gate: PolicyGate) -> frozenset[str]:
    """Return the environments that a gate names by its label and its spec together."""
    label = gate.metadata.labels.get(LABEL_APPLIES_TO)
    return frozenset([*gate.spec.applies_to, *([label] if label else [])])
