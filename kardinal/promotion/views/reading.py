"""Read the objects of one Pipeline, and choose the Bundle that is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kardinal.objects import JsonObject, labels_of
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate, PromotionStep
from kardinal.promotion.api.names import freeze_name, hold_name
from kardinal.promotion.policy.hold_gate import is_hold
from kardinal.promotion.policy.matching import is_freeze
from kardinal.promotion.views.bundles import chosen_bundle, newest_first
from kardinal.promotion.views.missing import no_bundle
from kardinal.promotion.views.reader import Reader, stored_pipeline

__all__ = [
    "PipelineObjects",
    "bundles_of",
    "find_bundle",
    "find_pipeline",
    "freeze_of",
    "holds_of",
    "read_objects",
]

SLICE = 50
"""The number of Bundles that are decoded before the event loop gets its turn: some 10 ms."""

Decode = Callable[[JsonObject], Bundle]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineObjects:
    """The objects of one Pipeline.

    `bundles` are all of its Bundles, newest first; `bundle` is the Bundle that is shown, to which `steps`, `gates` and
    `graph` belong. `gates` are gate instances.
    """

    pipeline: Pipeline
    bundles: Sequence[Bundle]
    bundle: Bundle | None = None
    steps: Sequence[PromotionStep] = ()
    gates: Sequence[PolicyGate] = ()
    graph: JsonObject | None = None
    freeze: PolicyGate | None = None
    held: Sequence[tuple[str, JsonObject]] = ()
    """The holds that rollbacks left, as pairs of an environment and a PolicyGate."""


async def read_objects(
    reader: Reader, namespace: str, pipeline: str, bundle: str | None = None, *, decode: Decode = Bundle.model_validate
) -> PipelineObjects:
    """Return the objects of a Pipeline and of the Bundle `bundle`, or of the Bundle that `chosen_bundle` defaults to.

    A program that reads the same Bundles again and again gives a `decode` that keeps them.

    Raises `Missing` if the Pipeline or the named Bundle does not exist.
    """
    found, bundles, gates = await asyncio.gather(
        find_pipeline(reader, namespace, pipeline),
        bundles_of(reader, namespace, pipeline, decode=decode),
        reader.gates(namespace),
    )
    shown = chosen_bundle(bundles, pipeline, bundle)
    freeze = freeze_of(gates, pipeline)
    held = holds_of(gates, pipeline)
    if shown is None:
        return PipelineObjects(pipeline=found, bundles=bundles, freeze=freeze, held=held)
    name = shown.metadata.name
    steps, instances, graph = await asyncio.gather(
        reader.steps(namespace, name), reader.instances(namespace, name), reader.graph(namespace, name)
    )
    return PipelineObjects(
        pipeline=found,
        bundles=bundles,
        bundle=shown,
        steps=[PromotionStep.model_validate(item) for item in steps],
        gates=[PolicyGate.model_validate(item) for item in instances],
        graph=graph,
        freeze=freeze,
        held=held,
    )


async def find_pipeline(reader: Reader, namespace: str, name: str) -> Pipeline:
    """Return a Pipeline. Raises `Missing`, with the names of the existing Pipelines in the remedy."""
    return Pipeline.model_validate(await stored_pipeline(reader, namespace, name))


async def bundles_of(
    reader: Reader, namespace: str, pipeline: str, *, decode: Decode = Bundle.model_validate
) -> list[Bundle]:
    """Return the Bundles of a Pipeline, newest first. There may be thousands, so the event loop gets its turns."""
    found = []
    for number, item in enumerate(await reader.bundles(namespace, pipeline), start=1):
        found.append(decode(item))
        if number % SLICE == 0:
            await asyncio.sleep(0)
    return newest_first(found)


async def find_bundle(reader: Reader, namespace: str, pipeline: str, name: str | None = None) -> Bundle:
    """Return the Bundle that `read_objects` would show. Raises `Missing`, also if the Pipeline has no Bundle at all."""
    found = chosen_bundle(await bundles_of(reader, namespace, pipeline), pipeline, name)
    if found is None:
        raise no_bundle(pipeline)
    return found


def freeze_of(gates: Iterable[JsonObject], pipeline: str) -> PolicyGate | None:
    """Return the freeze of a Pipeline, which `kardinal pause` creates; None if the Pipeline is not paused."""
    name = freeze_name(pipeline)
    found = (gate for gate in gates if gate["metadata"]["name"] == name and is_freeze(labels_of(gate)))
    return next((PolicyGate.model_validate(gate) for gate in found), None)


def holds_of(gates: Iterable[JsonObject], pipeline: str) -> list[tuple[str, JsonObject]]:
    """Return the holds that rollbacks left in a Pipeline, as pairs of an environment and a PolicyGate."""
    return list(_holds(gates, pipeline))


def _holds(gates: Iterable[JsonObject], pipeline: str) -> Iterator[tuple[str, JsonObject]]:
    for gate in gates:
        for environment in gate["spec"].get("appliesTo", ()):
            if gate["metadata"]["name"] == hold_name(pipeline, environment) and is_hold(gate, pipeline, environment):
                yield environment, gate
