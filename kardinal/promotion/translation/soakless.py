"""Find environments without upstreams whose gate asks for a soak: such a gate never opens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kardinal.promotion.api import Pipeline, PolicyGate
from kardinal.promotion.policy.binding import places_of
from kardinal.promotion.policy.context import SOAK
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.policy.needs import needs
from kardinal.promotion.translation.environment_order import OrderError, upstreams
from kardinal.tree.repository_url import InvalidRepositoryURL

__all__ = ["First", "asks_for_soak", "firsts_held", "soak_warning"]

_SHOWN = 3
"""The largest number of environments that the warning names; it counts the others."""


@dataclass(frozen=True, slots=True)
class First:
    """An environment without upstreams."""

    namespace: str
    pipeline: str
    environment: str

    def __str__(self) -> str:
        return f"{self.environment} of Pipeline {self.pipeline}" + (f" in {self.namespace}" if self.namespace else "")


def asks_for_soak(gate: PolicyGate) -> bool:
    """Return whether a gate with a valid expression can open only where there is a soak."""
    return needs(gate.spec.expression, SOAK)


def firsts_held(
    gate: PolicyGate, pipelines: Iterable[Pipeline], *, policy_namespaces: Collection[str]
) -> Iterator[First]:
    """Yield the environments without upstreams that the gate stands before."""
    for pipeline in pipelines:
        namespace = pipeline.metadata.namespace
        name = pipeline.metadata.name
        templates = collect([gate], pipeline=name, namespace=namespace, policy_namespaces=policy_namespaces)
        holding = [template for template in templates if not template.permits_skip]
        if not holding:
            continue
        try:
            before = upstreams(pipeline.spec.environments)
            places = places_of(pipeline)
        except (OrderError, InvalidRepositoryURL):
            continue  # The condition of the Pipeline reports this.
        for place in places:
            if not before[place.environment] and any(template.applies_to(place) for template in holding):
                yield First(namespace, name, place.environment)


def soak_warning(firsts: Iterable[First]) -> str:
    """Return the warning that a gate never opens before these environments; empty if there are none."""
    found = [str(first) for first in firsts]
    if not found:
        return ""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (
        f"it never opens before {', '.join(found[:_SHOWN])}{more}: nothing comes before it, so there is no {SOAK}; "
        "let the gate stand before later environments alone, by spec.appliesTo or spec.match"
    )
