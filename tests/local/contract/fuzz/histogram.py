"""What a run has met: a fuzz that only ever asks for what is granted proves little."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.local.contract.fuzz.outcomes import Outcome
from tests.local.contract.fuzz.steps import JsonObject, Sequence

__all__ = ["Histogram"]


@dataclass
class Histogram:
    """Counts over the answers of one server."""

    verbs: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    codes: Counter[int] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    schemas: set[str] = field(default_factory=set)
    sequences: int = 0
    shared: int = 0

    def add(self, sequence: Sequence, outcomes: list[Outcome]) -> None:
        self.sequences += 1
        self.kinds["custom" if sequence.definition else sequence.kind] += 1
        self.verbs.update(
            f"{step.verb}/{step.subresource}" if step.subresource else step.verb for step in sequence.steps
        )
        self.codes.update(outcome.code for outcome in outcomes)
        self.shared += any(len(outcome.managers or ()) > 1 for outcome in outcomes)
        if sequence.definition is not None:
            slot = _slot(sequence)
            name = f"{sequence.kind}.{slot}"
            if name not in self.schemas:
                self.schemas.add(name)
                _count_shapes(_schema(sequence.definition, slot), self.shapes)

    @property
    def conflicts(self) -> float:
        """The share of requests that were answered 409."""
        return self.codes[409] / max(self.codes.total(), 1)

    @property
    def refusals(self) -> float:
        """The share of requests that were refused for another reason."""
        refused = sum(number for code, number in self.codes.items() if code >= 400 and code != 409)
        return refused / max(self.codes.total(), 1)

    @property
    def several_managers(self) -> float:
        """The share of objects that had several managers at some time."""
        return self.shared / max(self.sequences, 1)

    def shown(self) -> str:
        lines = [
            f"sequences {self.sequences}, requests {self.codes.total()}, schemas {len(self.schemas)}",
            f"conflicts {self.conflicts:.0%}, refusals {self.refusals:.0%}, "
            f"objects with several managers {self.several_managers:.0%}",
        ]
        for name, counter in (
            ("kinds", self.kinds),
            ("requests", self.verbs),
            ("answers", self.codes),
            ("schema nodes", self.shapes),
        ):
            lines.append(f"{name}: " + ", ".join(f"{key} {number}" for key, number in counter.most_common()))
        return "\n".join(lines)


def _slot(sequence: Sequence) -> str:
    """The field below which this sequence writes."""
    for step in sequence.steps:
        if isinstance(step.body, dict):
            for holder in (step.body, step.body.get("spec"), step.body.get("status")):
                if isinstance(holder, dict):
                    for key in holder:
                        if key[:1] == "s" and key[1:].isdigit():
                            return str(key)
    return ""


def _schema(definition: JsonObject, slot: str) -> JsonObject:
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    found: JsonObject = properties.get(slot) or properties.get("spec", {}).get("properties", {}).get(slot, {})
    return found


def _count_shapes(schema: Any, shapes: Counter[str]) -> None:
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "array":
        shapes[f"list {schema.get('x-kubernetes-list-type', 'atomic by default')}"] += 1
    elif schema.get("type") == "object":
        shapes[f"map {schema.get('x-kubernetes-map-type', 'granular by default')}"] += 1
    else:
        shapes["scalar or open"] += 1
    for child in [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]:
        _count_shapes(child, shapes)
