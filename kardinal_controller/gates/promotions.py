"""The promotion that a gate instance belongs to, and where its evaluation gets the values of variables from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kardinal.cel import Program
from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.policy_gate import GateOrigin, PolicyGateSpec
from kardinal.promotion.policy.inputs import Input
from kardinal.promotion.translation.topology import GateNode, Topology
from kardinal.runtime import Source

__all__ = ["GatePromotion", "VariableSource"]


@dataclass(frozen=True, slots=True)
class GatePromotion:
    """The promotion that an instance belongs to, according to the recorded Graph of the Bundle."""

    graph: JsonObject
    bundle: Bundle
    node: GateNode
    topology: Topology
    spec: PolicyGateSpec
    """The spec that the instance must have."""

    @property
    def namespace(self) -> str:
        return self.bundle.metadata.namespace

    @property
    def environment(self) -> str:
        return self.node.environment

    @property
    def upstreams(self) -> tuple[str, ...]:
        """Return the environments right before that of the gate: their soak counts."""
        return self.topology.upstreams.get(self.environment, ())

    @property
    def template(self) -> Key:
        return Key(self.node.namespace, self.node.name)

    @property
    def origin(self) -> GateOrigin:
        assert self.spec.origin is not None  # noqa: S101 - translation writes it into every gate
        return self.spec.origin


class VariableSource(Protocol):
    """Reads the value of one variable of expressions, such as `upstream`, from the caches of the controller."""

    @property
    def name(self) -> str:
        """Return the variable."""
        ...

    def sources(self) -> Sequence[Source]:
        """Return the changes after which gates that read the variable are evaluated again, mapped to their keys."""
        ...

    def read(self, promotion: GatePromotion, program: Program) -> Input:
        """Return the value for a gate with the expression `program`. Called only if the expression reads it."""
        ...
