"""Match gate templates with Pipelines and environments.

The namespace of a gate decides its scope: a gate in a policy namespace is an org gate, whatever its labels say. No
Pipeline can remove it, or pass off a gate of its own as one. A gate with the Bundle label is an instance. It must not
be read as a template, or the gates would multiply with every Bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kardinal.objects.naming import short_hash
from kardinal.promotion.api import PolicyGate
from kardinal.promotion.api.names import (
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
from kardinal.promotion.api.policy_gate import GateScope, PolicyGateSpec
from kardinal.promotion.policy.binding import Binding, Place

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
"""Types of gates that hold by their existence, without an entry in a Graph."""


def is_instance(labels: Mapping[str, str]) -> bool:
    """Return whether a gate with these labels is an instance, which belongs to one Bundle."""
    return LABEL_BUNDLE in labels


def is_template(labels: Mapping[str, str]) -> bool:
    """Return whether a gate with these labels is a template: of instances for Bundles, or of permissions to skip."""
    return not is_instance(labels) and labels.get(LABEL_TYPE) not in _ASKED_BY_AGENTS


def is_freeze(labels: Mapping[str, str]) -> bool:
    """Return whether a gate with these labels can be a freeze.

    A freeze pauses its Pipeline only if it also has the name that the freeze of the Pipeline must have.
    """
    return not is_instance(labels) and labels.get(LABEL_TYPE) == TYPE_FREEZE


@dataclass(frozen=True, slots=True)
class GateTemplate:
    """A gate as it applies to one Pipeline. `environments` is empty if the gate names no environment."""

    namespace: str
    name: str
    scope: GateScope
    permits_skip: bool
    environments: frozenset[str]
    binding: Binding
    spec: PolicyGateSpec

    def applies_to(self, place: Place) -> bool:
        """Return whether the gate applies to an environment: by name, if it names any, and by its `match`."""
        named = not self.environments or place.environment in self.environments
        return named and self.binding.holds(place)


def collect(
    gates: Iterable[PolicyGate], *, pipeline: str, namespace: str, policy_namespaces: Collection[str]
) -> tuple[GateTemplate, ...]:
    """Return the templates that apply to one Pipeline: org gates before team gates, each scope sorted by name."""
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
    """Return the names of the instances, by `(namespace, gate, environment)`.

    Names can collide: two namespaces may have a gate of the same name, and `a` + `b-c` reads like `a-b` + `c`.
    Colliding names get a hash of their key, because otherwise a team's gate could take the place of an org gate.
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
    """Return the environments that a gate names, in its label or in `spec.appliesTo`."""
    label = gate.metadata.labels.get(LABEL_APPLIES_TO)
    return frozenset([*gate.spec.applies_to, *([label] if label else [])])
