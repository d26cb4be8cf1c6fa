"""Find the environments before which a gate asks for a soak that there never is: nothing comes before them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kardinal.api import Pipeline, PolicyGate
from kardinal.api.repository_url import InvalidRepositoryURL
from kardinal.policy.binding import places_of
from kardinal.policy.context import SOAK
from kardinal.policy.matching import collect
from kardinal.policy.needs import needs
from kardinal.translation.environment_order import OrderError, upstreams

__all__ = ["First", "asks_for_soak", "firsts_held", "soak_warning"]

_SHOWN = 3
"""Environments that are told; of others there is the number."""


@dataclass(frozen=True, slots=True)
class First:
    """An environment that nothing comes before."""

    namespace: str
    pipeline: str
    environment: str

    def __str__(self) -> str:
        return f"{self.environment} of Pipeline {self.pipeline}" + (f" in {self.namespace}" if self.namespace else "")


def asks_for_soak(gate: PolicyGate) -> bool:
    """Return whether a gate with a valid expression is closed wherever there is no soak."""
    return needs(gate.spec.expression, SOAK)


def firsts_held(
    gate: PolicyGate, pipelines: Iterable[Pipeline], *, policy_namespaces: Collection[str]
) -> Iterator[First]:
    """Yield the environments that nothing comes before and that the gate stands before."""
    for pipeline in pipelines:
        namespace, name = pipeline.metadata.namespace, pipeline.metadata.name
        templates = collect([gate], pipeline=name, namespace=namespace, policy_namespaces=policy_namespaces)
        holding = [template for template in templates if not template.permits_skip]
        if not holding:
            continue
        try:
            before, places = upstreams(pipeline.spec.environments), places_of(pipeline)
        except (OrderError, InvalidRepositoryURL):
            continue  # The Pipeline says so itself.
        for place in places:
            if not before[place.environment] and any(template.applies_to(place) for template in holding):
                yield First(namespace, name, place.environment)


def soak_warning(firsts: Iterable[First]) -> str:
    """Return that a gate never opens before these environments; empty where there are none."""
    found = [str(first) for first in firsts]
    if not found:
        return ""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (
        f"it never opens before {', '.join(found[:_SHOWN])}{more}: nothing comes before it, so there is no {SOAK}; "
        "let the gate stand before later environments alone, by spec.appliesTo or spec.match"
    )
